#include "deploy/submit/run_scale.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"
#include "deploy/submit/cluster_runs.h"
#include "deploy/submit/manifests.h"
#include "deploy/submit/pod_notes.h"
#include "deploy/submit/run_objects.h"
#include "deploy/submit/submitted_run.h"
#include "proto/control.pb.h"
#include "proto/kubectl.pb.h"

namespace satrap {
namespace {

constexpr int64_t kScalePollMs = 1000;
constexpr char kBrokenOff[] = "stopped by a signal; the same command completes the change";

// The processes of that part that have not asked for a place yet: "embedding_ps 2".
std::vector<std::string> NotThere(const ScalePlan& plan) {
  std::vector<std::string> names;
  for (const ScalePlan::Part& part : plan.parts()) {
    for (int index = part.now(); index < part.wanted(); ++index) {
      const auto& waiting = part.waiting();
      const bool has_asked =
          std::find(waiting.begin(), waiting.end(), static_cast<uint32_t>(index)) != waiting.end();
      if (!has_asked) names.push_back(MemberName(part.role(), index));
    }
  }
  return names;
}

class Scaling {
 public:
  Scaling(const std::string& run, const std::vector<std::string>& sets, Kubectl* kubectl,
          const WatchOptions& options)
      : run_(run), sets_(sets), kubectl_(kubectl), options_(options) {}

  absl::Status Scale() {
    ASSIGN_OR_RETURN(ScalePlan plan, Plan());
    ASSIGN_OR_RETURN(const KubectlList before, PartsOf(run_, kubectl_));
    RETURN_IF_ERROR(AddPods(plan, before));
    if (plan.changes_nothing()) {
      options_.say(absl::StrCat("the run ", run_, " has these values already"));
    } else {
      absl::Status changed = AwaitPods(&plan);
      if (changed.ok()) changed = MakeWish();
      if (!changed.ok()) return absl::IsCancelled(changed) ? changed : TakenBack(changed);
    }
    RETURN_IF_ERROR(NoteChanges(run_, sets_, kubectl_));
    return RemovePods(plan, &ScalePlan::Part::wanted);
  }

 private:
  absl::StatusOr<ScalePlan> Plan() {
    std::vector<std::string> more = sets_;
    more.emplace_back("--plan");
    ASSIGN_OR_RETURN(std::vector<std::string> args,
                     ArgumentsInPod(run_, {"scale"}, kubectl_, more));
    ASSIGN_OR_RETURN(const std::string text, kubectl_->Run(std::move(args)));
    ScalePlan plan;
    RETURN_IF_ERROR(ParseText(text, "the plan", &plan));
    return plan;
  }

  const KubectlObject* SetOf(const KubectlList& parts, Role role) const {
    return FindObject(parts, "StatefulSet", NameOfRole(run_, role));
  }

  absl::Status SetReplicas(Role role, int replicas) {
    return kubectl_
        ->Run({"scale", absl::StrCat("statefulsets.apps/", NameOfRole(run_, role)),
               absl::StrCat("--replicas=", replicas)})
        .status();
  }

  absl::Status AddPods(const ScalePlan& plan, const KubectlList& parts) {
    for (const ScalePlan::Part& part : plan.parts()) {
      const KubectlObject* const set = SetOf(parts, part.role());
      if (set == nullptr) {
        return absl::FailedPreconditionError(
            absl::StrCat("there is no StatefulSet ", NameOfRole(run_, part.role()),
                         ": to make it, repeat the command that submitted or resumed the run"));
      }
      const int64_t more = part.wanted() - set->spec().replicas();
      if (more <= 0) continue;
      options_.say(absl::StrCat("adds ", Counted(static_cast<uint64_t>(more), "pod"), " of ",
                                RoleName(part.role())));
      RETURN_IF_ERROR(SetReplicas(part.role(), part.wanted()));
    }
    return absl::OkStatus();
  }

  // Says what the pods wait for. FAILED_PRECONDITION: a pod can never work.
  absl::Status TellNotes() {
    const absl::StatusOr<KubectlList> parts = PartsOf(run_, kubectl_);
    if (!parts.ok()) return absl::OkStatus();  // it is asked again
    notes_ = watch_.Notes(*parts, MonotonicMs());
    for (PodNote& note : NotesOfMissing(*parts, kubectl_)) notes_.push_back(std::move(note));
    for (const PodNote& note : notes_) {
      const std::string line = LineOf(note);
      if (note.is_final) return absl::FailedPreconditionError(WithCures({note}));
      if (std::find(told_.begin(), told_.end(), line) != told_.end()) continue;
      told_.push_back(line);
      options_.say(line);
    }
    return absl::OkStatus();
  }

  // Waits until all processes that the change needs have asked for a place.
  absl::Status AwaitPods(ScalePlan* plan) {
    const auto limit_ms = static_cast<int64_t>(plan->start_seconds() * 1000);
    const int64_t until_ms = MonotonicMs() + limit_ms;
    while (true) {
      const std::vector<std::string> missing = NotThere(*plan);
      if (missing.empty()) return absl::OkStatus();
      RETURN_IF_ERROR(TellNotes());
      if (MonotonicMs() >= until_ms) {
        return absl::DeadlineExceededError(absl::StrCat(
            absl::StrJoin(missing, ", "), " did not ask for a place within ", limit_ms / 1000,
            " s (kubernetes.start_seconds)", notes_.empty() ? "" : ": ", WithCures(notes_)));
      }
      if (options_.wait(kScalePollMs) != 0) return absl::CancelledError(kBrokenOff);
      // While one generation replaces another, no coordinator answers.
      const absl::StatusOr<ScalePlan> next = Plan();
      if (next.ok()) *plan = *next;
    }
  }

  absl::Status MakeWish() {
    ASSIGN_OR_RETURN(std::vector<std::string> args,
                     ArgumentsInPod(run_, {"scale"}, kubectl_, sets_));
    ASSIGN_OR_RETURN(const Streamed streamed, kubectl_->Stream(std::move(args), options_.show));
    if (streamed.signal != 0) return absl::CancelledError(kBrokenOff);
    if (streamed.succeeded()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the run ", run_, " was not scaled"));
  }

  // Removes the pods that were added, unless the run has the new size nevertheless. Returns `why`.
  absl::Status TakenBack(const absl::Status& why) {
    const absl::StatusOr<ScalePlan> plan = Plan();
    absl::Status removed = plan.status();
    if (plan.ok()) {
      removed = RemovePods(*plan, &ScalePlan::Part::now);
      if (removed.ok()) return why;
    }
    return absl::Status(
        why.code(), absl::StrCat(why.message(), "; what was added is still there, and the same ",
                                 "command completes the change: ", removed.message()));
  }

  // Removes pods until each role has as many as the plan says.
  absl::Status RemovePods(const ScalePlan& plan, int32_t (ScalePlan::Part::*replicas)() const) {
    ASSIGN_OR_RETURN(const KubectlList parts, PartsOf(run_, kubectl_));
    for (const ScalePlan::Part& part : plan.parts()) {
      const KubectlObject* const set = SetOf(parts, part.role());
      const int32_t left = (part.*replicas)();
      if (set == nullptr || set->spec().replicas() <= left) continue;
      options_.say(absl::StrCat(
          "removes ", Counted(static_cast<uint64_t>(set->spec().replicas() - left), "pod"), " of ",
          RoleName(part.role())));
      RETURN_IF_ERROR(SetReplicas(part.role(), left));
    }
    return absl::OkStatus();
  }

  const std::string& run_;
  const std::vector<std::string>& sets_;
  Kubectl* const kubectl_;
  const WatchOptions& options_;
  PodWatch watch_;
  std::vector<std::string> told_;  // lines of notes
  std::vector<PodNote> notes_;     // the newest
};

}  // namespace

absl::Status ScaleRunInCluster(const std::string& run, const std::vector<std::string>& sets,
                               Kubectl* kubectl, const WatchOptions& options) {
  return Scaling(run, sets, kubectl, options).Scale();
}

}  // namespace satrap
