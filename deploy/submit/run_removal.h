// Removes a run from a cluster.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_RUN_REMOVAL_H_
#define SATRAP_DEPLOY_SUBMIT_RUN_REMOVAL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "deploy/submit/kubectl/kubectl.h"

namespace satrap {

// Begins to remove the objects of a run, and does not wait until they are gone. A submission of the
// same name is refused until then. The run's folder stays. A run whose submission was broken off
// before Job RUN was made is removed, too. NOT_FOUND: there is no such run. FAILED_PRECONDITION:
// the run has not ended, and `now` is false. Other errors are those of Kubectl::Run.
absl::Status DeleteRun(const std::string& run, bool now, Kubectl* kubectl);

// If the run has not ended, lets it take a last cut and end. Then begins to remove its objects.
// `wait` as in Submission. CANCELLED: a signal came. FAILED_PRECONDITION: the run cannot be
// stopped. After these two errors, nothing was removed. Other errors are those of DeleteRun.
// REQUIRES: as Kubectl::Stream
absl::Status StopAndDelete(const std::string& run, Kubectl* kubectl,
                           const std::function<int(int64_t timeout_ms)>& wait);

// Whether the cluster has no object of the run. False also if kubectl fails.
bool IsGone(const std::string& run, Kubectl* kubectl);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_RUN_REMOVAL_H_
