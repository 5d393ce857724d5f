// A run that was submitted before, as it goes on: what the cluster keeps of it is the ConfigMap of
// its newest submission.
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

// The newest submission of the run as it is now, with the changes of NoteChanges. NOT_FOUND: there
// is no such run. Other errors as Kubectl::Ask; INTERNAL: the ConfigMap cannot be read.
absl::StatusOr<RunInCluster> NewestSubmission(const std::string& run, Kubectl* kubectl);

// The next submission of the run, with the job, the image, the patch and the folder of the newest
// one. If a command that began the next one was broken off, returns that submission again, so that
// it can be completed. NOT_FOUND: there is no such run. UNAVAILABLE: it goes on, or has ended so
// lately that its Job has not seen it yet. FAILED_PRECONDITION: it has finished, or its first
// submission was broken off. Other errors as Kubectl::Ask; INTERNAL: the ConfigMap cannot be read.
absl::StatusOr<RunInCluster> NextSubmission(const std::string& run, Kubectl* kubectl);

// Notes at the ConfigMap of the newest submission how its job was changed meanwhile, so that the
// next one begins with the same job. `sets` are assignments as of ChangedJob; they replace earlier
// ones of the same fields. NOT_FOUND: there is no such run. Else as Kubectl::Ask.
absl::Status NoteChanges(const std::string& run, const std::vector<std::string>& sets,
                         Kubectl* kubectl);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_SUBMITTED_RUN_H_
