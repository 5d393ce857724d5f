// What may change in a job between two generations of a run, by `satrap resume --set` or `satrap
// scale`. Options of the fields say whether a field may change, and if not, why
// (proto/options.proto). Rules between fields are here.
//
// Settings that may change determine how many processes do the work and how fast, when to stop,
// validate and save, and how far a gradient moves a value. Settings that must not change determine
// the shape of what a cut holds, or which samples there are and in which order, because the ledger
// of a cut refers to that order. A reproducible run also keeps how its sums are made: the number of
// NN workers and of their compute threads, and the types on the wire. The numbers of all other
// processes may change, because contributions are sorted before they are added.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_JOB_CHANGE_H_
#define SATRAP_COMMON_CONFIG_JOB_CHANGE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace satrap {

// Checks whether a run of the job `from` may continue as `to`. INVALID_ARGUMENT with every problem,
// one per line: the path of each field that must not change, both values and the reason. Also
// reports, as ValidateJob does, whatever makes `to` invalid, such as fewer lanes than loaders. A
// problem that `from` has as well does not count, so that runs of an earlier build continue.
// REQUIRES: both are resolved (ResolveJob)
absl::Status CheckJobChange(const JobConfig& from, const JobConfig& to);

// `from` with the assignments `sets` applied in order (field_path.h), resolved and checked.
// Errors are those of SetField and CheckJobChange.
absl::StatusOr<JobConfig> ChangedJob(const JobConfig& from, const std::vector<std::string>& sets);

// For people: the fields in which two jobs differ, with both values: "nn_worker.device from HOST to
// CUDA, embedding_ps.replicas from 1 to 2". The run's folder is not compared.
std::string JobChangeText(const JobConfig& from, const JobConfig& to);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_JOB_CHANGE_H_
