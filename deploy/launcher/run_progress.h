// What the log of a run says about going on: what the launcher needs between two generations, and
// `satrap resume`, `status` and `checkpoint list` before the first.
//
// Thread-safe: functions of their arguments and of the run's folder.

#ifndef SATRAP_DEPLOY_LAUNCHER_RUN_PROGRESS_H_
#define SATRAP_DEPLOY_LAUNCHER_RUN_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/run_log.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

// How far a run has come, by its log.
struct RunProgress {
  uint64_t generation = 0;  // the newest; 0: none has begun
  std::string cause;        // of the newest generation
  absl::optional<JobConfig> job;
  absl::optional<CutEntry> cut;      // what the next generation begins from (RunLog::next_start)
  uint64_t cut_samples = 0;          // trained when it was taken; 0 if its manifest cannot be read
  absl::optional<RunResult> result;  // the run has finished
};

// DATA_LOSS as RunLog::Open.
absl::StatusOr<RunProgress> ReadRunProgress(const std::string& run_dir);

// "step 1,200 (cut_0001_000004)", or "the beginning".
std::string BeginningText(const RunProgress& progress);

// What `status`, the last of a generation that has died, knows of work after the newest cut:
// "about 34 steps (8,704 samples)"; empty if there is none.
std::string LostText(const RunProgress& progress, const StatusAnswer& status);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_RUN_PROGRESS_H_
