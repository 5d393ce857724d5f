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

// Asks the coordinator at `coordinator` for a last cut and the run's end, again in each generation
// that begins meanwhile, until the run's log has the end of that submission. Returns how the run
// has ended, a line for people. FAILED_PRECONDITION: it had finished, has failed, or goes on by a
// later submission; DEADLINE_EXCEEDED: it has not ended within `limit_ms` and its cut, which may
// still come; CANCELLED: `wait`, which waits and returns a signal or 0, has returned a signal.
absl::StatusOr<std::string> StopFromPod(const std::string& run_dir, uint64_t submission,
                                        const std::string& coordinator, int64_t limit_ms,
                                        const std::function<int(int64_t timeout_ms)>& wait);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_STORY_POD_STOP_H_
