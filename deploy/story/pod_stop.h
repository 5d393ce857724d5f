// Stops a run in a cluster, from one of its pods.
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_STORY_POD_STOP_H_
#define SATRAP_DEPLOY_STORY_POD_STOP_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace satrap {

// Asks the coordinator at `coordinator` for a last cut and the run's end. Asks again in each
// generation that begins meanwhile, until the run's log has the end of `submission`. Returns a line
// for people that says how the run has ended. FAILED_PRECONDITION if the run had finished, has
// failed, or continues as a later submission. DEADLINE_EXCEEDED if the run has not ended within
// `limit_ms`; its last cut may still come. CANCELLED if `wait` has returned a signal. `wait` waits
// for at most `timeout_ms`, and returns the signal that ended the wait, or 0.
absl::StatusOr<std::string> StopFromPod(const std::string& run_dir, uint64_t submission,
                                        const std::string& coordinator, int64_t limit_ms,
                                        const std::function<int(int64_t timeout_ms)>& wait);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_STORY_POD_STOP_H_
