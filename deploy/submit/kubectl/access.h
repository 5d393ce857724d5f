// Finds out whether the cluster answers, and whether the user has the rights that runs need there.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_KUBECTL_ACCESS_H_
#define SATRAP_DEPLOY_SUBMIT_KUBECTL_ACCESS_H_

#include "absl/status/status.h"
#include "deploy/submit/kubectl/kubectl.h"

namespace satrap {

// Returns `failed`, the error of a call of kubectl, with advice at the end of its message if the
// cluster does not answer or does not know the user, or if the user may not make a StatefulSet in
// the namespace. Otherwise, and for errors other than FAILED_PRECONDITION and DEADLINE_EXCEEDED,
// returns `failed` unchanged. Asks the cluster, because the messages of kubectl are for people.
// REQUIRES: !failed.ok()
absl::Status WithAdvice(const absl::Status& failed, Kubectl* kubectl);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_KUBECTL_ACCESS_H_
