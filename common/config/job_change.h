// Which fields of a job may differ between two generations of a run.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CONFIG_JOB_CHANGE_H_
#define SATRAP_COMMON_CONFIG_JOB_CHANGE_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace satrap {

// INVALID_ARGUMENT if a run that has begun as `from` cannot go on as `to`, naming the field.
absl::Status CheckJobChange(const JobConfig& from, const JobConfig& to);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_JOB_CHANGE_H_
