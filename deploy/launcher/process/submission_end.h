// Finds out from the run's log whether a submission of the run has begun, and whether it is over.
// The Jobs of a run in a cluster use this.
//
// Thread-safe: functions of their arguments and of the run's folder.

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

// How the submission has ended. If a run has finished, all of its submissions have ended. nullopt
// if the submission has not ended, or if the log does not exist yet or cannot be read now.
absl::optional<SubmissionEnd> EndOfSubmission(const std::string& run_dir, uint64_t submission);

// Whether the log has a generation of the submission. Also false if the log cannot be read now.
bool HasBegun(const std::string& run_dir, uint64_t submission);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_SUBMISSION_END_H_
