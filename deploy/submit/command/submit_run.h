// What the commands submit and resume do in the cluster: they make the run's objects, wait until
// its pods work, and show its story.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_COMMAND_SUBMIT_RUN_H_
#define SATRAP_DEPLOY_SUBMIT_COMMAND_SUBMIT_RUN_H_

#include <string>

#include "absl/status/statusor.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/manifests.h"
#include "deploy/submit/run_watch.h"

namespace satrap {

struct SubmitOptions {
  bool detach = false;   // ends as soon as the coordinator serves
  std::string runs_dir;  // where the run's namespace is noted (run_place.h)
  WatchOptions watch;    // `say` also gets what is made and what Kubernetes waits for
};

// Makes the submission, and shows the run's story unless the command detaches. Returns the exit
// code: 0 if the run ends well, 1 if it fails, or 128 plus the number of a signal, which ends the
// command but not the run. An error says in one line what is wrong, where, and what to do. Then
// nothing of the run is left in the cluster, with these exceptions:
//
//   UNAVAILABLE: the cluster no longer answers, so the run stays: it may be training
//   ALREADY_EXISTS: another run has the name, and stays
//   after a resume that has begun: what is kept of every run that has ended
//
// Blocks the signals of Stream. REQUIRES: CheckRun(run) is OK; called on the main thread
absl::StatusOr<int> SubmitRun(RunInCluster run, Kubectl* kubectl, const SubmitOptions& options);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_COMMAND_SUBMIT_RUN_H_
