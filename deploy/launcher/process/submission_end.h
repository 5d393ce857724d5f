// Whether a submission of a run is over, by the run's log: for the Jobs of a run in a cluster.
//
// Thread-safe: a function of its arguments and of the run's folder.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_SUBMISSION_END_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_SUBMISSION_END_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "proto/run_log.pb.h"

namespace satrap {

struct SubmissionEnd {
  absl::optional<EndEntry> end;  // absent: a later submission goes on with the run
};

// How the submission has ended. A run that has finished has ended for every submission. Nothing as
// long as it has not; also if the log is not there yet, or cannot be read now.
absl::optional<SubmissionEnd> EndOfSubmission(const std::string& run_dir, uint64_t submission);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_SUBMISSION_END_H_
