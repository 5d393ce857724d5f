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
// code: 0 or 1 as the run ends, or 128 and the number of a signal, which ends the command and not
// the run. An error says in one line what is wrong, where, and what to do; then nothing of the run
// is left in the cluster, except
//
//   UNAVAILABLE: the cluster does not answer any more, and the run may train
//   ALREADY_EXISTS: another run has the name, and goes on
//   after a resume that has begun: what is kept of every run that has ended
//
// Blocks the signals of Stream. REQUIRES: CheckRun; the main thread
absl::StatusOr<int> SubmitRun(RunInCluster run, Kubectl* kubectl, const SubmitOptions& options);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_COMMAND_SUBMIT_RUN_H_
