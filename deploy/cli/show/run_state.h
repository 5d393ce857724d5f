// The text that `satrap status` prints about a run.
//
// Thread-safe: the functions depend only on their arguments and on the run's folder.

#ifndef SATRAP_DEPLOY_CLI_SHOW_RUN_STATE_H_
#define SATRAP_DEPLOY_CLI_SHOW_RUN_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// The text for a run in progress: state, progress, last cut, why generations began, and each
// process. Every line ends with a line feed. `of_pods`: for a run in pods, its job, from which
// memory limits are shown; null for a run on this machine.
std::string RunningRunText(const std::string& run_dir, const StatusAnswer& status,
                           const JobConfig* of_pods = nullptr);

// The text for a run without processes: how it ended, its last cut, why its generations began, and
// how to continue it. Reads the log, report.txt and failure.txt. DATA_LOSS as RunLog::Open returns
// it.
absl::StatusOr<std::string> EndedRunText(const std::string& run_dir, int64_t now_unix_ms);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_SHOW_RUN_STATE_H_
