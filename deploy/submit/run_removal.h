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

// Has the objects of a run removed, and does not wait for that: a submission of the same name is
// refused until all of them are gone. The run's folder stays. A run whose submission was broken off
// before Job RUN was made is removed, too. NOT_FOUND: there is none. FAILED_PRECONDITION: the run
// has not ended, and `now` is false. Other errors as Kubectl::Run.
absl::Status DeleteRun(const std::string& run, bool now, Kubectl* kubectl);

// Lets the run take a last cut and end if it goes on, and then has its objects removed. `wait` as
// of Submission. CANCELLED: a signal. FAILED_PRECONDITION: the run cannot be stopped. Then nothing
// was removed. Else as DeleteRun. REQUIRES: as Kubectl::Stream
absl::Status StopAndDelete(const std::string& run, Kubectl* kubectl,
                           const std::function<int(int64_t timeout_ms)>& wait);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_RUN_REMOVAL_H_
