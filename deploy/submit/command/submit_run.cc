#include "deploy/submit/command/submit_run.h"

#include <csignal>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "deploy/submit/command/run_place.h"
#include "deploy/submit/kubectl/access.h"
#include "deploy/submit/run_objects.h"
#include "deploy/submit/submission.h"

namespace satrap {
namespace {

constexpr int kSignalExit = 128;

std::string HowToComeBack(const RunInCluster& run) {
  return absl::StrCat("the run continues; to follow it, use `satrap logs ",
                      RunArgument(run.name, run.space),
                      " --follow`; to see how it ended, use `satrap list",
                      run.space.empty() ? "" : " --namespace ", run.space, "`");
}

void Note(const Submission& submission, const SubmitOptions& options) {
  // A real cluster names the namespace of each object that it makes.
  if (submission.space().empty()) return;
  const absl::Status noted =
      NoteNamespace(options.runs_dir, submission.run().name, submission.space());
  if (noted.ok()) return;
  options.watch.say(absl::StrCat(
      "warning: the namespace ", submission.space(),
      " of the run is not noted, so commands for it need --namespace: ", noted.message()));
}

// Waits until the coordinator serves and, if `all_pods`, until all pods run. Sets `has_begun` when
// the coordinator serves.
absl::Status AwaitRun(Submission* submission, bool all_pods, bool* has_begun) {
  RETURN_IF_ERROR(submission->AwaitCoordinator());
  *has_begun = true;
  return all_pods ? submission->AwaitPods() : absl::OkStatus();
}

// Removes what was made, because of the error `why`. Returns `why` with what else the user must
// know.
absl::Status GiveUp(const absl::Status& why, bool has_begun, const SubmitOptions& options,
                    Submission* submission) {
  const RunInCluster& run = submission->run();
  const auto with = [&why](const std::string& more) {
    return absl::Status(why.code(), absl::StrCat(why.message(), "; ", more));
  };
  // The log holds the number of a submission that has begun. If its objects were removed, the next
  // submission would get the same number, and would be told the end of this one.
  if (has_begun && run.submission > 1) {
    return with(absl::StrCat("when the run has ended, `satrap resume ",
                             RunArgument(run.name, run.space), "` begins another attempt"));
  }
  const absl::Status removed = submission->Remove();
  if (!removed.ok()) return with(std::string(removed.message()));
  if (run.submission == 1) ForgetNamespace(options.runs_dir, run.name, submission->space());
  return why;
}

}  // namespace

absl::StatusOr<int> SubmitRun(RunInCluster run, Kubectl* kubectl, const SubmitOptions& options) {
  Submission submission(std::move(run), kubectl, options.watch.say, options.watch.wait);
  absl::Status status = submission.CheckCluster();
  // Until the objects are created, Ctrl-C ends the kubectl in progress, and what was created so far
  // is removed.
  BlockSignalsOfStream();
  if (status.ok()) status = submission.Create();
  if (!status.ok()) return WithAdvice(status, kubectl);
  const RunInCluster& made = submission.run();
  options.watch.say(
      absl::StrCat("run ", made.name, " is submitted; its folder is ", RunDirOf(made)));
  Note(submission, options);
  // From here on, Ctrl-C ends this command but not the run.
  bool has_begun = false;
  status = AwaitRun(&submission, /*all_pods=*/!options.detach, &has_begun);
  if (absl::IsCancelled(status)) {
    options.watch.say(HowToComeBack(made));
    return kSignalExit + SIGINT;
  }
  if (absl::IsUnavailable(status)) {
    // The state of the run is unknown: it may be training.
    options.watch.say(HowToComeBack(made));
    return status;
  }
  // Job RUN was deleted. If that was `satrap delete`, the other objects are being deleted as well.
  // Otherwise the run continues, and the same command makes Job RUN again.
  if (absl::IsNotFound(status)) return status;
  if (!status.ok()) return GiveUp(status, has_begun, options, &submission);
  if (options.detach) {
    options.watch.say(HowToComeBack(made));
    return 0;
  }
  ASSIGN_OR_RETURN(const Watched watched, WatchRun(made.name, kubectl, options.watch));
  if (watched.signal == 0) return watched.failed ? 1 : 0;
  options.watch.say(HowToComeBack(made));
  return kSignalExit + watched.signal;
}

}  // namespace satrap
