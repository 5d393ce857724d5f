#include "deploy/submit/kubectl/access.h"

#include "absl/strings/str_cat.h"

namespace satrap {

absl::Status WithAdvice(const absl::Status& failed, Kubectl* kubectl) {
  if (!absl::IsFailedPrecondition(failed) && !absl::IsDeadlineExceeded(failed)) return failed;
  const auto with = [&failed](absl::string_view advice) {
    return absl::Status(failed.code(), absl::StrCat(failed.message(), ": ", advice));
  };
  // Every user whom the cluster knows may make this call and the next.
  if (!kubectl->Run({"version", "--output=json"}).ok()) {
    return with(
        "the cluster of your context does not answer, or does not know you; `kubectl config "
        "get-contexts` shows your contexts, and `kubectl version` whether the cluster answers");
  }
  if (!kubectl->Run({"auth", "can-i", "create", "statefulsets.apps", "--quiet"}).ok()) {
    return with(absl::StrCat(
        "you need the cluster role `edit` in ",
        kubectl->space().empty() ? "the namespace of your context"
                                 : absl::StrCat("namespace ", kubectl->space()),
        ", which an administrator of the cluster can give you; --namespace chooses another "
        "namespace"));
  }
  return failed;
}

}  // namespace satrap
