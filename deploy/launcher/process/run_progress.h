// What the log of a run says about continuing it: for the launcher between two generations, and for
// `satrap resume`, `status` and `checkpoint list` before the first.
//
// Thread-safe: functions of their arguments and of the run's folder.

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
  uint64_t generation = 0;        // the newest; 0: none has begun
  Began began = BEGAN_START;      // why that generation began
  absl::optional<JobConfig> job;  // the next generation's (JobOfNext in job_of_run.h)
  // The changes of the job that were dropped, in their order.
  std::vector<DroppedEntry> dropped;
  bool drops_newest = false;  // the last of them was dropped by the newest generation
  // If no generation of `job` can be started: the job to go back to (JobToGoBackTo).
  absl::optional<JobConfig> job_before;
  absl::optional<CutEntry> cut;      // what the next generation begins from (RunLog::next_start)
  uint64_t cut_unix_ms = 0;          // when it was committed
  uint64_t cut_samples = 0;          // trained when it was taken; 0 if its manifest cannot be read
  std::vector<Restart> restarts;     // the generations after the first, as StatusAnswer has them
  absl::optional<RunResult> result;  // set if the run has finished
};

// DATA_LOSS as RunLog::Open.
absl::StatusOr<RunProgress> ReadRunProgress(const std::string& run_dir);

// Call after the processes of the next generation could not be started with `job`, for the reason
// in `started`. If that job is the log's, on trial, and no new attempt would help
// (FAILED_PRECONDITION), sets progress->job to the earlier one and returns what to report; else
// returns `started`.
absl::StatusOr<std::string> GoBack(const absl::Status& started, const JobConfig& job,
                                   RunProgress* progress);

// Which change of the job was dropped, and why, in two lines.
std::string DroppedText(const DroppedEntry& dropped);

// "step 1,200 (cut_0001_000004)", or "the beginning".
std::string BeginningText(const RunProgress& progress);

// What is wrong with the cut that the next generation begins from (CutProblem); empty if nothing is
// found, or if there is no cut.
std::string StartProblem(const std::string& run_dir, const RunProgress& progress);

// How to continue the run, called `shown_dir` in the text: "`satrap resume RUN` goes on from step
// 1,200 (cut_0001_000004)"; or, if that cut is not whole, what is wrong and what to do instead.
std::string ResumeText(const std::string& run_dir, const RunProgress& progress,
                       const std::string& shown_dir);

inline constexpr char kNoWorkIsLost[] = "no work is lost";

// Whether LossText says that no work is lost: training had ended with the newest cut.
bool LosesNoWork(const RunProgress& progress, const StatusAnswer& status);

// How much work of a generation is lost by its death. `status` is its last one, and `progress` was
// read after its death:
//     no work is lost                              training had ended with the newest cut
//     about 34 steps (8,704 samples) after it are lost    this many were reported after the cut
//     at most the work after it is lost            it is not known how much that was
// "It" is what BeginningText names.
std::string LossText(const RunProgress& progress, const StatusAnswer& status);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_RUN_PROGRESS_H_
