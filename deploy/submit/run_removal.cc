#include "deploy/submit/run_removal.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "deploy/submit/cluster_runs.h"
#include "deploy/submit/run_objects.h"
#include "proto/kubectl.pb.h"

namespace satrap {
namespace {

// How many seconds Job RUN may take to see that the run has ended.
constexpr int kAttempts = 60;
// The same limit if the run could not be stopped, perhaps because it had just ended.
constexpr int kAttemptsAfterFailure = 10;

void ShowLine(absl::string_view line) {
  fwrite(line.data(), 1, line.size(), stdout);
  fflush(stdout);
}

}  // namespace

absl::Status DeleteRun(const std::string& run, bool now, Kubectl* kubectl) {
  KubectlList objects;
  RETURN_IF_ERROR(kubectl->Ask({"get", kKindsOfRun, SelectorOf(run)}, &objects));
  if (objects.items().empty()) return NoRun(run, *kubectl);
  const KubectlObject* const job = FindObject(objects, "Job", run);
  if (job != nullptr && !HasEnded(*job) && !now) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the run ", run, " has not ended: `satrap delete ", RunArgument(run, kubectl->space()),
        " --now` removes it, and loses the work after its last cut"));
  }
  return kubectl
      ->Run({"delete", kKindsOfRun, SelectorOf(run), "--cascade=foreground", "--wait=false"})
      .status();
}

bool IsGone(const std::string& run, Kubectl* kubectl) {
  KubectlList objects;
  return kubectl->Ask({"get", kKindsOfRun, SelectorOf(run)}, &objects).ok() &&
         objects.items().empty();
}

absl::Status StopAndDelete(const std::string& run, Kubectl* kubectl,
                           const std::function<int(int64_t timeout_ms)>& wait) {
  constexpr char kCancelled[] = "stopped by a signal; nothing is removed";
  int attempts = kAttempts;
  absl::StatusOr<std::vector<std::string>> stop = ArgumentsInPod(run, {"stop"}, kubectl);
  if (stop.ok()) {
    ASSIGN_OR_RETURN(const Streamed streamed, kubectl->Stream(*std::move(stop), ShowLine));
    if (streamed.signal != 0) return absl::CancelledError(kCancelled);
    if (!streamed.succeeded()) attempts = kAttemptsAfterFailure;
  } else if (!absl::IsFailedPrecondition(stop.status()) && !absl::IsNotFound(stop.status())) {
    return stop.status();
  }
  for (int attempt = 1;; ++attempt) {
    const absl::Status status = DeleteRun(run, /*now=*/false, kubectl);
    if (!absl::IsFailedPrecondition(status)) return status;
    if (attempt == attempts) {
      return attempts == kAttempts
                 ? status
                 : absl::FailedPreconditionError(absl::StrCat(
                       "the run could not be stopped, and nothing is removed: ", status.message()));
    }
    if (wait(1000) != 0) return absl::CancelledError(kCancelled);
  }
}

}  // namespace satrap
