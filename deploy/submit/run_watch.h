// Shows the story of a run that is in a cluster.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_RUN_WATCH_H_
#define SATRAP_DEPLOY_SUBMIT_RUN_WATCH_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/submit/kubectl/kubectl.h"

namespace satrap {

// How WatchRun has ended.
struct Watched {
  int signal = 0;       // that ended it while the run goes on; 0: none
  bool failed = false;  // the run has
};

struct WatchOptions {
  // Gets the lines of the story, with their line ends.
  std::function<void(absl::string_view line)> show;
  // Gets what Kubernetes waits for, while no pod tells the story yet.
  std::function<void(const std::string& line)> say;
  // Waits for `timeout_ms`. Returns the signal that ended the wait, or 0 (WaitForSignal).
  std::function<int(int64_t timeout_ms)> wait;
};

// Shows the logs of the pods of Job RUN, which are the run's story, until the run has ended or a
// signal comes. Each line is shown once: a log that breaks off is continued from there, and the log
// of a pod that has ended is shown to its end. NOT_FOUND: the Job is gone, or belongs to a later
// submission. UNAVAILABLE: the run has ended, but a log cannot be shown to its end. Other errors
// are those of Kubectl::Stream. REQUIRES: as Kubectl::Stream
absl::StatusOr<Watched> WatchRun(const std::string& run, Kubectl* kubectl,
                                 const WatchOptions& options);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_RUN_WATCH_H_
