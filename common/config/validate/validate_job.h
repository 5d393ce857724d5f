// Checks whether a job is valid. Shapes inside the dense network are checked by the network itself
// (nn_worker/graph).
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_VALIDATE_VALIDATE_JOB_H_
#define SATRAP_COMMON_CONFIG_VALIDATE_VALIDATE_JOB_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/problems.h"
#include "proto/job.pb.h"

namespace satrap {

// OK, or INVALID_ARGUMENT with every problem, one per line: the field's path, the allowed values,
// and the value that it has. REQUIRES: defaults are filled in
absl::Status ValidateJob(const JobConfig& job);

// The problems that ValidateJob reports, as a list. REQUIRES: defaults are filled in
Problems ProblemsOfJob(const JobConfig& job);

// The parts of ValidateJob.
void ValidateData(const JobConfig& job, Problems* problems);
void ValidateKafka(const JobConfig& job, Problems* problems);  // part of ValidateData
void ValidateTables(const JobConfig& job, Problems* problems);
void ValidateCandidates(const JobConfig& job, Problems* problems);
void ValidateKubernetes(const JobConfig& job, Problems* problems);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_VALIDATE_VALIDATE_JOB_H_
