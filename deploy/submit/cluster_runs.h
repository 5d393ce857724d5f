// Shows the runs that are in a cluster, from what kubectl reports.
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

// Lists the runs of the namespace, one line for each, sorted by name: the state, when it was
// submitted, the folder, and why it has failed. Also lists runs without a Job RUN: their submission
// was broken off, or a resume could not begin. Empty if there are no runs. Errors are those of
// Kubectl::Ask.
absl::StatusOr<std::string> ListOfRuns(Kubectl* kubectl);

// Which log to show: the run's story if `role` is not set, else the log of process `index` of the
// role.
struct LogChoice {
  absl::optional<Role> role;
  int index = 0;
  bool follow = false;
  bool previous = false;  // of the container before this one
};

// The arguments with which kubectl shows the log. For the story, that is the log of its newest pod.
// NOT_FOUND: there is no such pod. Other errors are those of Kubectl::Ask.
absl::StatusOr<std::vector<std::string>> LogArguments(const std::string& run,
                                                      const LogChoice& choice, Kubectl* kubectl);

// The arguments with which kubectl runs one of satrap's commands in the coordinator's pod of the
// run, even if the run's submission was broken off. `command` are the words of a command that takes
// a run's folder; `more` and the flags of PlaceFlags follow the folder. NOT_FOUND: there is no such
// run. FAILED_PRECONDITION: it has ended. Other errors are those of Kubectl::Ask.
absl::StatusOr<std::vector<std::string>> ArgumentsInPod(const std::string& run,
                                                        const std::vector<std::string>& command,
                                                        Kubectl* kubectl,
                                                        const std::vector<std::string>& more = {});

// How the run has ended, in several lines; empty if it has not ended. NOT_FOUND: there is no such
// run. Other errors are those of Kubectl::Ask.
absl::StatusOr<std::string> EndText(const std::string& run, Kubectl* kubectl);

// The run's pods, one line for each: phase, whether it is ready, node, restarts, and what
// Kubernetes waits for. Also the objects that lack pods, and those that somebody has deleted, with
// the commands that make them again. If a pod should be gone but is not, such as one of a lost
// node, a line has the command that removes it. Errors are those of Kubectl::Ask.
absl::StatusOr<std::string> PodsText(const std::string& run, Kubectl* kubectl);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_CLUSTER_RUNS_H_
