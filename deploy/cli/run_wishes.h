// What stop, checkpoint RUN and scale do: they wish something of a run in progress, wait until it
// is fulfilled, and say what has become of the run.
//
// Thread-compatible. Each reaches the run's coordinator as RunConnection does, with its errors.

#ifndef SATRAP_DEPLOY_CLI_RUN_WISHES_H_
#define SATRAP_DEPLOY_CLI_RUN_WISHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace satrap {

struct WishEnd {
  std::string text;     // what has happened, one line
  std::string warning;  // why the run has stopped without a last cut; empty if all is well
};

// How long a launcher may take, after the run has stopped, to end its processes.
inline constexpr int64_t kReleaseMs = 90000;

// Lets the run take a last cut and stop, and waits until its launcher has ended its processes, so
// that it can be resumed. DEADLINE_EXCEEDED if that takes longer than `release_ms`;
// FAILED_PRECONDITION if the run finished instead; ABORTED if it ended before it said that it had
// stopped, and its log does not show that it left with a last cut.
absl::StatusOr<WishEnd> StopRun(const std::string& run_dir, int64_t release_ms = kReleaseMs);

// Takes a cut and waits until it is committed.
absl::StatusOr<WishEnd> TakeCut(const std::string& run_dir);

// Makes the run go on with its job changed by `sets` (ChangedJob), and waits until a generation of
// that job runs. A run that has these values already is left alone. INVALID_ARGUMENT with every
// field that cannot be changed so.
absl::StatusOr<WishEnd> ScaleRun(const std::string& run_dir, const std::vector<std::string>& sets);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_RUN_WISHES_H_
