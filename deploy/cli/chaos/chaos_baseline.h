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

// Trains a job in a child process, as `satrap train JOB` with these overrides would, in the folder
// `run_dir`. The child prints to this process's stdout and stderr. ABORTED if the training does not
// finish; other errors are those of RunInChild (child_run.h). After an error no process of the run
// is left.
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
