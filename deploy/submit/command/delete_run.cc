#include "deploy/submit/command/delete_run.h"

#include "deploy/submit/command/run_place.h"
#include "deploy/submit/run_removal.h"

namespace satrap {

absl::Status DeleteNotedRun(const std::string& run, bool now, const std::string& runs_dir,
                            Kubectl* kubectl, const std::function<int(int64_t timeout_ms)>& wait) {
  const absl::Status deleted =
      now ? DeleteRun(run, /*now=*/true, kubectl) : StopAndDelete(run, kubectl, wait);
  // NOT_FOUND may also mean that there is no kubectl.
  if (deleted.ok() || (absl::IsNotFound(deleted) && IsGone(run, kubectl))) {
    ForgetNamespace(runs_dir, run, kubectl->space());
  }
  return deleted;
}

}  // namespace satrap
