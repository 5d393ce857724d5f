// The functions behind the commands stop, checkpoint RUN and scale. Each makes a wish to a run in
// progress, waits until the wish is fulfilled, and reports what has happened to the run.
//
// Thread-compatible. Every function here reaches the run's coordinator through a RunConnection, and
// returns the errors of RunConnection.

#ifndef SATRAP_DEPLOY_CLI_RUN_WISHES_H_
#define SATRAP_DEPLOY_CLI_RUN_WISHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace satrap {

struct WishEnd {
  std::string text;     // what has happened, one line
  std::string warning;  // why the run has stopped without a last cut; empty if all is well
};

// How long to wait for the launcher to end its processes after the run has stopped.
inline constexpr int64_t kReleaseMs = 90000;

// Makes the run take a last cut and stop, and waits until its launcher has ended its processes, so
// that it can be resumed. DEADLINE_EXCEEDED if that takes longer than `release_ms`;
// FAILED_PRECONDITION if the run finished instead; ABORTED if the run ended without reporting that
// it had stopped, and its log does not show that it stopped with a last cut. If the run reported
// that it had stopped, but without a last cut, the result is OK and `warning` gives the reason.
absl::StatusOr<WishEnd> StopRun(const std::string& run_dir, int64_t release_ms = kReleaseMs);

// Takes a cut and waits until it is committed.
absl::StatusOr<WishEnd> TakeCut(const std::string& run_dir);
// As TakeCut, for a command in a pod of that submission of the run. The run's coordinator serves at
// `coordinator`.
absl::StatusOr<WishEnd> TakeCutInPod(const std::string& run_dir, uint64_t submission,
                                     const std::string& coordinator);

// Changes the job of the run by `sets` (ChangedJob), and waits until a generation with the new job
// runs. Does nothing if the run already has these values. INVALID_ARGUMENT names every field that
// cannot be changed in this way.
absl::StatusOr<WishEnd> ScaleRun(const std::string& run_dir, const std::vector<std::string>& sets);
// As ScaleRun, for a command in a pod (TakeCutInPod).
absl::StatusOr<WishEnd> ScaleRunInPod(const std::string& run_dir, uint64_t submission,
                                      const std::string& coordinator,
                                      const std::vector<std::string>& sets);

// Returns how many processes of each role the change of ScaleRun needs, and which of them already
// wait for a place. Changes nothing. FAILED_PRECONDITION if the run has ended. Other errors are
// those that ScaleRun returns before it makes its wish.
absl::StatusOr<ScalePlan> PlanScaleInPod(const std::string& run_dir, uint64_t submission,
                                         const std::string& coordinator,
                                         const std::vector<std::string>& sets);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_RUN_WISHES_H_
