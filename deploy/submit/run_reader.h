// Reads the folder of a run that has no pods any more, with a pod that is made for that.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_RUN_READER_H_
#define SATRAP_DEPLOY_SUBMIT_RUN_READER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/submit/kubectl/kubectl.h"

namespace satrap {

// Runs one of satrap's commands in a pod with the image and the volumes of the run's newest
// submission, returns what it prints, and removes the pod. `command` are the words of a command
// that takes a run's folder; `more` and the flags of PlaceFlags follow the folder. `say` gets what
// Kubernetes waits for; `wait` as in Submission. NOT_FOUND: there is no such run.
// FAILED_PRECONDITION: the command has failed, and the message is its last one; or the pod can
// never work. DEADLINE_EXCEEDED: the command has not ended within kReaderSeconds. CANCELLED: a
// signal came. Other errors are those of Kubectl::Ask. REQUIRES: as Kubectl::Stream
absl::StatusOr<std::string> ReadInPod(const std::string& run,
                                      const std::vector<std::string>& command,
                                      const std::vector<std::string>& more, Kubectl* kubectl,
                                      const std::function<void(const std::string& line)>& say,
                                      const std::function<int(int64_t timeout_ms)>& wait);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_RUN_READER_H_
