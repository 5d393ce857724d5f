// Runs that are in a cluster already, by what kubectl shows of them.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_CLUSTER_RUNS_H_
#define SATRAP_DEPLOY_SUBMIT_CLUSTER_RUNS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "proto/control.pb.h"

namespace satrap {

// INVALID_ARGUMENT: a run in a cluster cannot have that name.
absl::Status CheckRunName(const std::string& name);

// The runs of the namespace, a line each, sorted by name: its state, when it was submitted, its
// folder, and why it has failed. Also those that have no Job RUN: half made, or left by a resume
// that could not begin. "" if there is none.
// Errors as Kubectl::Ask.
absl::StatusOr<std::string> ListOfRuns(Kubectl* kubectl);

// Which log to show: without a role the run's story, else that of the process `index` of the role.
struct LogChoice {
  absl::optional<Role> role;
  int index = 0;
  bool follow = false;
  bool previous = false;  // of the container before this one
};

// The arguments with which kubectl shows it: of the story, that of its newest pod. NOT_FOUND: there
// is no such pod. Other errors as Kubectl::Ask.
absl::StatusOr<std::vector<std::string>> LogArguments(const std::string& run,
                                                      const LogChoice& choice, Kubectl* kubectl);

// The arguments with which kubectl gives `command`, the words of one of satrap's that takes a run's
// folder, `more` and PlaceFlags, to the coordinator's pod of the run, also if its submission was
// broken off. NOT_FOUND: there is no such run. FAILED_PRECONDITION: it has ended. Other errors as
// Kubectl::Ask.
absl::StatusOr<std::vector<std::string>> ArgumentsInPod(const std::string& run,
                                                        const std::vector<std::string>& command,
                                                        Kubectl* kubectl,
                                                        const std::vector<std::string>& more = {});

// How the run has ended, in lines; "" if it has not. NOT_FOUND: there is no such run. Other errors
// as Kubectl::Ask.
absl::StatusOr<std::string> EndText(const std::string& run, Kubectl* kubectl);

// The run's pods, a line each: phase, whether it is ready, node, restarts, and what Kubernetes
// waits for; and what has no pod. A pod that does not go, as one of a lost node, has a line with
// the command that removes it. Errors as Kubectl::Ask.
absl::StatusOr<std::string> PodsText(const std::string& run, Kubectl* kubectl);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_CLUSTER_RUNS_H_
