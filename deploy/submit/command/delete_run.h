// What the command delete does in the cluster.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_COMMAND_DELETE_RUN_H_
#define SATRAP_DEPLOY_SUBMIT_COMMAND_DELETE_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "deploy/submit/kubectl/kubectl.h"

namespace satrap {

// Removes the run as StopAndDelete or, if `now`, DeleteRun does (run_removal.h), and returns their
// errors. Also removes the note of the run's namespace (run_place.h), even if there was no such run
// any more: such a note would lead every later command with this name to no run. `wait` as in
// Submission. REQUIRES: as Kubectl::Stream
absl::Status DeleteNotedRun(const std::string& run, bool now, const std::string& runs_dir,
                            Kubectl* kubectl, const std::function<int(int64_t timeout_ms)>& wait);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_COMMAND_DELETE_RUN_H_
