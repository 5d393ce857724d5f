// The runs that `satrap chaos` compares its run with: the same job, trained without a disturbance.
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_CLI_CHAOS_CHAOS_BASELINE_H_
#define SATRAP_DEPLOY_CLI_CHAOS_CHAOS_BASELINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// Trains a job as `satrap train JOB` with these overrides does, into `run_dir`, in a child process.
// Its output goes where this process's does. ABORTED if it does not finish, and errors as
// RunInChild (child_run.h); then nothing of it is left running.
absl::StatusOr<RunResult> TrainUndisturbed(const std::string& install_dir, const std::string& job,
                                           const std::vector<std::string>& sets,
                                           const std::string& run_dir);

// A line that compares the test AUC of a run with the mean and the range of undisturbed ones. For a
// reproducible job it compares the models instead: DATA_LOSS if a digest differs.
// FAILED_PRECONDITION if there is nothing to compare.
absl::StatusOr<std::string> CompareRuns(const JobConfig& job, const RunResult& disturbed,
                                        const std::vector<RunResult>& undisturbed);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_CHAOS_CHAOS_BASELINE_H_
