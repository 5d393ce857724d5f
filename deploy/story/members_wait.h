// What Job RUN-members does: it waits until the run has ended. The Job owns the objects of the
// run's pods, so Kubernetes removes them with the Job when the Job has ended.
//
// Thread-safe: a function of its arguments and of the run's folder.

#ifndef SATRAP_DEPLOY_STORY_MEMBERS_WAIT_H_
#define SATRAP_DEPLOY_STORY_MEMBERS_WAIT_H_

#include <cstdint>
#include <functional>
#include <string>

namespace satrap {

// Waits until the submission is over (EndOfSubmission), or until the coordinator at the address
// `coordinator` refuses to begin it (common/refusal/refusal.h). Then waits 5 s more, in which all
// processes are told. `wait` waits and returns the signal that ended the wait, or 0. Returns the
// exit code: 0, or 128 plus the signal's number.
int AwaitSubmissionEnd(const std::string& run_dir, uint64_t submission,
                       const std::string& coordinator,
                       const std::function<int(int64_t timeout_ms)>& wait);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_STORY_MEMBERS_WAIT_H_
