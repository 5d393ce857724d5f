// Runs that are in a cluster already, by what kubectl shows of them.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_CLUSTER_RUNS_H_
#define SATRAP_DEPLOY_SUBMIT_CLUSTER_RUNS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "deploy/submit/kubectl.h"
#include "proto/control.pb.h"

namespace satrap {

// How the watching of a run has ended.
struct Watched {
  int signal = 0;       // that ended it while the run goes on; 0: none
  bool failed = false;  // the run has
};

// Shows the log of Job RUN, the run's story, until the run has ended or a signal comes. `wait` as
// in submission.h. NOT_FOUND: the Job is gone. Other errors as Kubectl::Stream. REQUIRES: as there
absl::StatusOr<Watched> WatchRun(const std::string& run, Kubectl* kubectl,
                                 const std::function<int(int64_t timeout_ms)>& wait);

// The runs of the namespace, a line each, sorted by name: its state, its folder, and when it was
// submitted. "" if there is none. Errors as Kubectl::Ask.
absl::StatusOr<std::string> ListOfRuns(Kubectl* kubectl);

// The arguments with which kubectl shows a log: of the run's story without a role, else of the
// process `index` of the role.
std::vector<std::string> LogArguments(const std::string& run, absl::optional<Role> role, int index,
                                      bool follow, bool previous);

// The arguments with which kubectl gives `command`, one of satrap's that takes a run's folder, to
// the coordinator's pod of the run. NOT_FOUND: there is no such run. FAILED_PRECONDITION: it has
// ended. Other errors as Kubectl::Ask.
absl::StatusOr<std::vector<std::string>> ArgumentsInPod(const std::string& run,
                                                        const std::string& command,
                                                        Kubectl* kubectl);

// The run's pods, a line each: phase, restarts, and what Kubernetes waits for. Errors as
// Kubectl::Ask.
absl::StatusOr<std::string> PodsText(const std::string& run, Kubectl* kubectl);

// Has the objects of a run removed, and does not wait for that: a submission of the same name is
// refused until all of them are gone. The run's folder stays. NOT_FOUND: there is none.
// FAILED_PRECONDITION: the run has not ended, and `now` is false. Other errors as Kubectl::Run.
absl::Status DeleteRun(const std::string& run, bool now, Kubectl* kubectl);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_CLUSTER_RUNS_H_
