// Gives a run in a cluster another size while it trains.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_RUN_SCALE_H_
#define SATRAP_DEPLOY_SUBMIT_RUN_SCALE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/run_watch.h"

namespace satrap {

// Changes the job of the run by `sets`, assignments as of ChangedJob, in steps that may each be
// repeated, so that the same call completes one that was broken off:
//
//   1. pods are added; their processes ask for a place and are told to wait
//   2. when each of them has asked, a program in the coordinator's pod makes the wish, and waits
//      until the next generation runs
//   3. the change is noted for the next submission (NoteChanges)
//   4. pods are removed
//
// If the added pods do not ask within kubernetes.start_seconds, can never work, or the run refuses
// the change, they are removed again. `show` of the options gets what the program in the pod
// prints.
//
// FAILED_PRECONDITION: the run goes on as before, and the message or the program's own, on stderr,
// says why. DEADLINE_EXCEEDED: the pods have not asked. CANCELLED: a signal; the pods that were
// added stay. NOT_FOUND: there is no such run. Else as Kubectl::Run; the run may or may not have
// the new size then. REQUIRES: as Kubectl::Stream
absl::Status ScaleRunInCluster(const std::string& run, const std::vector<std::string>& sets,
                               Kubectl* kubectl, const WatchOptions& options);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_RUN_SCALE_H_
