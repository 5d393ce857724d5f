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

// Changes the job of the run by `sets`, which are assignments as in ChangedJob. Each step may be
// repeated, so the same call completes a change that was broken off:
//
//   1. pods are added; their processes ask for a place and are told to wait
//   2. when each of them has asked, a program in the coordinator's pod makes the wish, and waits
//      until the next generation runs
//   3. the change is noted for the next submission (NoteChanges)
//   4. pods are removed
//
// The added pods are removed again if they do not ask within kubernetes.start_seconds, if one of
// them can never work, or if the run refuses the change. `show` of the options gets what the
// program in the pod prints.
//
// FAILED_PRECONDITION: the run continues as before; the message says why, or the program has said
// it on stderr. DEADLINE_EXCEEDED: the pods have not asked in time. CANCELLED: a signal came; the
// added pods stay. NOT_FOUND: there is no such run. Other errors are those of Kubectl::Run; after
// them the run may or may not have the new size. REQUIRES: as Kubectl::Stream
absl::Status ScaleRunInCluster(const std::string& run, const std::vector<std::string>& sets,
                               Kubectl* kubectl, const WatchOptions& options);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_RUN_SCALE_H_
