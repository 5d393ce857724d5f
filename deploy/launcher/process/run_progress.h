// Finds out from the log of a run how the run can be continued. The launcher uses this between two
// generations; `satrap resume`, `status` and `checkpoint list` use it before the first.
//
// Thread-safe: the functions depend only on their arguments and on the run's folder.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_RUN_PROGRESS_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_RUN_PROGRESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/run_log.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

// How far a run has come, according to its log.
struct RunProgress {
  uint64_t generation = 0;        // the newest generation; 0: none has begun
  Began began = BEGAN_START;      // why that generation began
  absl::optional<JobConfig> job;  // the next generation's (JobOfNext in job_of_run.h)
  // The changes of the job that were dropped, in order.
  std::vector<DroppedEntry> dropped;
  bool drops_newest = false;  // the newest generation's job was dropped
  // The earlier job to use if no generation with `job` can be started (JobToGoBackTo).
  absl::optional<JobConfig> job_before;
  absl::optional<CutEntry> cut;      // that the next generation begins from (RunLog::next_start)
  uint64_t cut_unix_ms = 0;          // when it was committed
  uint64_t cut_samples = 0;          // trained before it; 0 if its manifest cannot be read
  std::vector<Restart> restarts;     // the generations after the first, as StatusAnswer has them
  absl::optional<RunResult> result;  // set if the run has finished
  absl::optional<EndEntry> end;      // set if it was stopped or has failed, and not resumed since
};

// DATA_LOSS in the same cases as RunLog::Open.
absl::StatusOr<RunProgress> ReadRunProgress(const std::string& run_dir);

// Sets in `status` how the run has ended. Returns false, and does nothing, if it has not.
bool SetEndOfLog(const RunProgress& progress, StatusAnswer* status);

// Call after the processes of the next generation could not be started with `job`; `started` says
// why. If the log has this job, on trial, and another attempt would not help (FAILED_PRECONDITION),
// sets progress->job to the earlier job and returns the text to report. Otherwise returns
// `started`.
absl::StatusOr<std::string> GoBack(const absl::Status& started, const JobConfig& job,
                                   RunProgress* progress);

// A text of two lines: which change of the job was dropped, and why.
std::string DroppedText(const DroppedEntry& dropped);

// Where the next generation begins: "step 1,200 (cut_0001_000004)", or "the beginning".
std::string BeginningText(const RunProgress& progress);

// What is wrong with the cut that the next generation begins from (CutProblem); empty if nothing is
// found, or if there is no cut.
std::string StartProblem(const std::string& run_dir, const RunProgress& progress);

// How to continue the run, which the text calls `shown_dir`: "`satrap resume RUN` continues from
// step 1,200 (cut_0001_000004)". If that cut is damaged or missing: what is wrong and what to do
// instead.
std::string ResumeText(const std::string& run_dir, const RunProgress& progress,
                       const std::string& shown_dir);

inline constexpr char kNoWorkIsLost[] = "no work is lost";

// Whether training had ended with the newest cut. LossText then says that no work is lost.
bool LosesNoWork(const RunProgress& progress, const StatusAnswer& status);

// How much work of a generation is lost because it died. `status` is its last status, and
// `progress` was read after the death:
//     no work is lost                              training had ended with the newest cut
//     about 34 steps (8,704 samples) after it are lost    this many were reported after the cut
//     at most the work after it is lost            it is not known how much that was
// "It" is the place that BeginningText names.
std::string LossText(const RunProgress& progress, const StatusAnswer& status);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_RUN_PROGRESS_H_
