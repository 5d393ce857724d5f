// Reads a run that was submitted before, to change or resume it. The cluster keeps the run in the
// ConfigMap of its newest submission.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_SUBMITTED_RUN_H_
#define SATRAP_DEPLOY_SUBMIT_SUBMITTED_RUN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/manifests.h"

namespace satrap {

// The newest submission of the run as it is now, including the changes of NoteChanges. NOT_FOUND:
// there is no such run. INTERNAL: the ConfigMap cannot be read. Other errors are those of
// Kubectl::Ask.
absl::StatusOr<RunInCluster> NewestSubmission(const std::string& run, Kubectl* kubectl);

// The next submission of the run, with the job, the image, the patch and the folder of the newest
// one. If a command that began the next submission was broken off, returns that submission again,
// so that it can be completed. NOT_FOUND: there is no such run. UNAVAILABLE: the run has not ended,
// or its Job has not seen the end yet. FAILED_PRECONDITION: the run has finished, or its first
// submission was broken off. INTERNAL: the ConfigMap cannot be read. Other errors are those of
// Kubectl::Ask.
absl::StatusOr<RunInCluster> NextSubmission(const std::string& run, Kubectl* kubectl);

// Records in the ConfigMap of the newest submission how the run's job was changed meanwhile, so
// that the next submission begins with the changed job. `sets` are assignments as in ChangedJob;
// they replace earlier assignments to the same fields. NOT_FOUND: there is no such run. Other
// errors are those of Kubectl::Ask.
absl::Status NoteChanges(const std::string& run, const std::vector<std::string>& sets,
                         Kubectl* kubectl);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_SUBMITTED_RUN_H_
