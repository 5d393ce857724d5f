#include "deploy/submit/submission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/config/kubernetes_names.h"
#include "common/numeric/hash.h"
#include "common/role/random_id.h"
#include "common/thread/clock.h"
#include "deploy/submit/run_objects.h"

namespace satrap {
namespace {

constexpr int64_t kPollMs = 1000;
// How long a run that has failed may keep its pods, so that all processes are told of it.
constexpr int64_t kToldMs = 15000;
// How long the removal of objects may take after the grace of their pods.
constexpr int64_t kGoneMs = 75000;
// A ConfigMap holds 1 MiB, part of which is for its other fields.
constexpr size_t kMostJobBytes = 1000000;

bool HasAccess(const KubectlObject& claim, absl::string_view mode) {
  const auto& modes = claim.spec().accessmodes();
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

std::string NameOf(const KubectlObject& object) {
  return absl::StrCat(object.kind(), " ", object.metadata().name());
}

bool IsOfRun(const KubectlObject& object, const std::string& run) {
  return LabelOf(object, kAppLabel) == "satrap" && LabelOf(object, kRunLabel) == run;
}

// Why the run with these parts has failed, according to the last message of its story.
std::string WhyFailed(const KubectlList& parts, const std::string& run) {
  const std::string why = LastWordsOfStory(parts);
  return why.empty() ? absl::StrCat("Job ", run, " gives no reason") : why;
}

}  // namespace

absl::Status CheckRun(const RunInCluster& run) {
  if (!IsRunName(run.name)) {
    return absl::InvalidArgumentError(absl::StrCat("the name of the run ", kRunNameRule, ", got '",
                                                   run.name, "': choose another by --name"));
  }
  if (!run.space.empty() && !IsDnsLabel(run.space)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--namespace must have at most 63 lower-case letters, digits and '-', got '",
                     run.space, "'"));
  }
  if (!run.job.has_kubernetes()) {
    return absl::InvalidArgumentError(
        "the job does not say where the run's folder is in the cluster: it needs at least "
        "kubernetes { volumes { claim: \"CLAIM\" mount_path: \"/runs\" } }");
  }
  if (run.image.empty()) {
    return absl::InvalidArgumentError(
        "the job names no image: set kubernetes.image, or give --image IMAGE (`satrap image` makes "
        "one)");
  }
  const size_t bytes = ResolvedJobText(run.job).size();
  if (bytes <= kMostJobBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the job has ", bytes,
                                                 " bytes as text, more than the ", kMostJobBytes,
                                                 " that a ConfigMap may hold: name fewer files"));
}

absl::StatusOr<std::string> PatchOfTemplate(const std::string& pod_patch, const std::string& file) {
  const std::string where = absl::StrCat("kubernetes.pod_patch: ", file);
  std::string patch = "spec:\n  template:\n";
  bool has_content = false;
  for (absl::string_view line : absl::StrSplit(pod_patch, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (absl::StartsWith(line, "---")) {
      if (has_content) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, " must hold one document, but has several"));
      }
      if (line.size() > 3) {
        return absl::InvalidArgumentError(absl::StrCat(
            where, " must begin its document in a line after `---`, got `", line, "`"));
      }
      continue;
    }
    const absl::string_view content = absl::StripLeadingAsciiWhitespace(line);
    has_content = has_content || !(content.empty() || content[0] == '#');
    absl::StrAppend(&patch, line.empty() ? "" : "    ", line, "\n");
  }
  if (has_content) return patch;
  return absl::InvalidArgumentError(
      absl::StrCat(where, " must hold a part of a pod, but is empty"));
}

absl::StatusOr<std::string> PatchedText(const Manifest& manifest, const std::string& template_patch,
                                        Kubectl* kubectl) {
  const std::string text = manifest.object.Text();
  if (!manifest.has_pods || template_patch.empty()) return text;
  return kubectl->Run({"patch", "--local", "--filename=-", "--type=strategic",
                       absl::StrCat("--patch=", template_patch), "--output=yaml"},
                      text);
}

absl::StatusOr<std::string> PatchedManifests(RunInCluster run, Kubectl* kubectl) {
  const std::string& template_patch = run.template_patch;
  run.owner_uid.clear();
  if (template_patch.empty()) return ManifestsText(run);
  ASSIGN_OR_RETURN(std::string text, PatchedText(MembersJob(run), template_patch, kubectl));
  for (const Manifest& manifest : OwnedManifests(run)) {
    ASSIGN_OR_RETURN(const std::string next, PatchedText(manifest, template_patch, kubectl));
    absl::StrAppend(&text, "---\n", next);
  }
  return text;
}

Submission::Submission(RunInCluster run, Kubectl* kubectl, Say say, Wait wait)
    : run_(std::move(run)), kubectl_(kubectl), say_(std::move(say)), wait_(std::move(wait)) {
  run_.identity =
      absl::StrCat(absl::Hex(Xxh64(ManifestsText(run_) + run_.template_patch), absl::kZeroPad16));
  run_.command = absl::StrCat(absl::Hex(RandomId(), absl::kZeroPad16));
}

absl::Status Submission::CheckCluster() {
  for (const KubernetesVolume& volume : run_.job.kubernetes().volumes()) {
    if (!volume.has_claim()) continue;
    KubectlObject claim;
    RETURN_IF_ERROR(kubectl_->Ask(
        {"get", "persistentvolumeclaims", volume.claim(), "--ignore-not-found"}, &claim));
    const std::string what = absl::StrCat("the claim ", volume.claim());
    if (!claim.has_metadata()) {
      return absl::NotFoundError(absl::StrCat(what, " is not in ", SpaceText(run_.space),
                                              ": make it first, with access mode ReadWriteMany"));
    }
    if (!HasAccess(claim, "ReadWriteMany") &&
        !(volume.read_only() && HasAccess(claim, "ReadOnlyMany"))) {
      return absl::FailedPreconditionError(
          absl::StrCat(what, " must be ReadWriteMany", volume.read_only() ? " or ReadOnlyMany" : "",
                       ", because pods on several nodes use it, got ",
                       absl::StrJoin(claim.spec().accessmodes(), ", ")));
    }
    if (claim.status().phase() == "Lost") {
      return absl::FailedPreconditionError(absl::StrCat(what, " has lost its volume"));
    }
    if (claim.status().phase() != "Bound") {
      say_(absl::StrCat("warning: ", what, " is not bound to a volume yet (",
                        claim.status().phase(), ")"));
    }
  }
  for (const KubernetesSecret& secret : run_.job.kubernetes().secrets()) {
    ASSIGN_OR_RETURN(
        const std::string found,
        kubectl_->Run({"get", "secrets", secret.name(), "--ignore-not-found", "--output=name"}));
    if (!found.empty()) continue;
    return absl::NotFoundError(absl::StrCat("the secret ", secret.name(), " is not in ",
                                            SpaceText(run_.space), ": make it first"));
  }
  return absl::OkStatus();
}

absl::StatusOr<KubectlList> Submission::Objects() {
  // Look for the names, not the labels, because somebody else may have made one of these objects.
  std::vector<std::string> args = {"get", ResourceOf(MembersJob(run_))};
  for (const Manifest& manifest : OwnedManifests(run_)) args.push_back(ResourceOf(manifest));
  args.emplace_back("--ignore-not-found");
  KubectlList objects;
  RETURN_IF_ERROR(kubectl_->Ask(std::move(args), &objects));
  return objects;
}

bool Submission::IsOurs(const KubectlObject& object) const {
  if (AnnotationOf(object, kIdentityAnnotation) != run_.identity) return false;
  const auto& owners = object.metadata().ownerreferences();
  // The ConfigMap and the two Jobs have no owner.
  if (object.kind() == "ConfigMap") {
    return AnnotationOf(object, kRunDirAnnotation) == RunDirOf(run_);
  }
  return object.kind() == "Job" || (owners.size() == 1 && owners[0].uid() == run_.owner_uid);
}

bool Submission::IsOfThisCommand(const KubectlObject& object) const {
  return AnnotationOf(object, kCommandAnnotation) == run_.command;
}

absl::Status Submission::CheckFree(const KubectlList& objects) const {
  const std::string space = SpaceText(run_.space);
  const std::string remove =
      absl::StrCat(": choose another name by --name, or remove it by `satrap delete ",
                   RunArgument(run_.name, run_.space), "`");
  for (const KubectlObject& object : objects.items()) {
    if (IsOfRun(object, run_.name)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(object), " in ", space, " has a name that the run ", run_.name,
        " needs, but does not belong to a run of that name: choose another name by --name"));
  }
  for (const KubectlObject& object : objects.items()) {
    if (!IsBeingDeleted(object)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(object), " of an earlier run ", run_.name,
                     " is still being deleted: give the command again when it is gone"));
  }
  if (FindObject(objects, "Job", run_.name) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a run ", run_.name, " in ", space, remove));
  }
  for (const KubectlObject& object : objects.items()) {
    if (IsOurs(object)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(object), " already exists, from another submission with the name ",
                     run_.name, remove));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Submission::EarlierIn(const KubectlList& objects) {
  bool has_begun = false;  // an earlier command has begun this submission
  std::string earlier;
  for (const KubectlObject& object : objects.items()) {
    if (!IsOfRun(object, run_.name)) continue;
    const bool is_members = object.metadata().name() == NameOfMembersJob(run_.name);
    if (IsBeingDeleted(object)) {
      // The object may belong to an earlier attempt with the same number that could not begin.
      earlier = NameOf(object);
    } else if (SubmissionOf(object) >= run_.submission) {
      has_begun = has_begun || is_members;
    } else if (object.kind() != "Job" || is_members) {
      earlier = NameOf(object);
    } else if (!HasEnded(object)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the run ", run_.name, " is in progress: there is nothing to resume"));
    }
  }
  if (has_begun || !earlier.empty()) return earlier;
  KubectlList pods;
  RETURN_IF_ERROR(kubectl_->Ask({"get", "pods", SelectorOf(run_.name)}, &pods));
  for (const KubectlObject& pod : pods.items()) {
    if (LabelOf(pod, kPartLabel) != "story" && !IsReader(pod)) return NameOf(pod);
  }
  return "";
}

absl::Status Submission::AwaitEarlier(KubectlList* objects) {
  // Pods that are being deleted may take all of their grace.
  const auto limit_ms = static_cast<int64_t>(run_.job.stop_seconds() * 1000) + kGoneMs;
  const int64_t until_ms = MonotonicMs() + limit_ms;
  std::string told;
  while (true) {
    ASSIGN_OR_RETURN(const std::string earlier, EarlierIn(*objects));
    if (earlier.empty()) break;
    if (MonotonicMs() >= until_ms) {
      return absl::FailedPreconditionError(
          absl::StrCat(earlier, " of the previous submission is still there after ",
                       limit_ms / 1000, " s: give the command again when it is gone"));
    }
    if (told != earlier) say_(absl::StrCat("waits until ", earlier, " is gone"));
    told = earlier;
    if (wait_(kPollMs) != 0) return absl::CancelledError("stopped by a signal");
    ASSIGN_OR_RETURN(*objects, Objects());
  }
  KubectlList own;
  for (const KubectlObject& object : objects->items()) {
    const bool is_earlier = IsOfRun(object, run_.name) && SubmissionOf(object) < run_.submission;
    if (!is_earlier) *own.add_items() = object;
  }
  *objects = std::move(own);
  return absl::OkStatus();
}

absl::Status Submission::RemoveEarlierStory() {
  KubectlObject story;
  RETURN_IF_ERROR(kubectl_->Ask({"get", "jobs.batch", run_.name, "--ignore-not-found"}, &story));
  if (!story.has_metadata() || SubmissionOf(story) >= run_.submission) return absl::OkStatus();
  return kubectl_
      ->Run({"delete", "jobs.batch", run_.name, "--ignore-not-found", "--cascade=foreground",
             "--wait=true", "--timeout=50s"})
      .status();
}

absl::Status Submission::CheckPodsAreGone() {
  KubectlList pods;
  RETURN_IF_ERROR(kubectl_->Ask({"get", "pods", SelectorOf(run_.name)}, &pods));
  for (const KubectlObject& pod : pods.items()) {
    if (IsReader(pod)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(pod), " of another submission of the run ", run_.name,
                     " is there: give the command again when it is gone"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Submission::Make(const Manifest& manifest) {
  ASSIGN_OR_RETURN(const std::string text, PatchedText(manifest, run_.template_patch, kubectl_));
  KubectlObject made;
  const absl::Status created = kubectl_->Ask({"create", "--filename=-"}, &made, text);
  if (created.ok()) {
    space_ = made.metadata().namespace_();
    return made.metadata().uid();
  }
  const absl::Status status(created.code(),
                            absl::StrCat("cannot make ", manifest.kind, " ", manifest.name, " in ",
                                         SpaceText(run_.space), ": ", created.message()));
  const absl::StatusOr<KubectlList> objects = Objects();
  if (!objects.ok()) return status;
  const KubectlObject* const found = FindObject(*objects, manifest.kind, manifest.name);
  if (found == nullptr || !IsOurs(*found)) return status;
  // Either another command has made the object meanwhile, or this command has made it, but the
  // answer was lost.
  if (manifest.name == run_.name && !IsOfThisCommand(*found)) {
    return absl::AlreadyExistsError(
        absl::StrCat("another command has just submitted the run ", run_.name,
                     ", and what this one has made belongs to that submission"));
  }
  return found->metadata().uid();
}

absl::Status Submission::CreateAll(const KubectlList& objects) {
  for (const Manifest& manifest : OwnedManifests(run_)) {
    if (FindObject(objects, manifest.kind, manifest.name) != nullptr) continue;
    if (manifest.name == run_.name && run_.submission > 1) RETURN_IF_ERROR(RemoveEarlierStory());
    RETURN_IF_ERROR(Make(manifest).status());
  }
  return absl::OkStatus();
}

absl::Status Submission::Create() {
  ASSIGN_OR_RETURN(KubectlList objects, Objects());
  if (run_.submission > 1) RETURN_IF_ERROR(AwaitEarlier(&objects));
  const KubectlObject* const members = FindObject(objects, "Job", NameOfMembersJob(run_.name));
  if (members != nullptr) {
    run_.owner_uid = members->metadata().uid();
    space_ = members->metadata().namespace_();
  }
  RETURN_IF_ERROR(CheckFree(objects));
  absl::Status created;
  if (members == nullptr) {
    if (run_.submission == 1) RETURN_IF_ERROR(CheckPodsAreGone());
    const absl::StatusOr<std::string> owner = Make(MembersJob(run_));
    if (owner.ok()) run_.owner_uid = *owner;
    created = owner.status();
  } else {
    say_(absl::StrCat("completes the submission of ", run_.name, " that was broken off"));
  }
  if (created.ok()) created = CreateAll(objects);
  if (created.ok() || absl::IsAlreadyExists(created)) return created;
  const absl::Status removed = Remove();
  return absl::Status(
      created.code(),
      absl::StrCat(created.message(), "; ",
                   removed.ok() ? "what was made of the run is removed: correct the cause, and "
                                  "give the command again"
                                : removed.message()));
}

absl::Status Submission::Tell(const std::vector<PodNote>& notes) {
  for (const PodNote& note : notes) {
    const std::string line = LineOf(note);
    if (note.is_final) return absl::FailedPreconditionError(WithCures({note}));
    if (std::find(told_.begin(), told_.end(), line) != told_.end()) continue;
    told_.push_back(line);
    say_(line);
  }
  return absl::OkStatus();
}

int64_t Submission::StartMs() const {
  return static_cast<int64_t>(run_.job.kubernetes().start_seconds() * 1000);
}

absl::Status Submission::Await(int64_t limit_ms,
                               const std::function<bool(const KubectlList& parts)>& is_over) {
  const int64_t until_ms = MonotonicMs() + limit_ms;
  while (true) {
    // If the cluster does not answer, ask again later.
    const absl::StatusOr<KubectlList> parts = PartsOf(run_.name, kubectl_);
    if (parts.ok()) {
      std::vector<PodNote> notes = watch_.Notes(*parts, MonotonicMs());
      for (PodNote& note : NotesOfMissing(*parts, kubectl_)) notes.push_back(std::move(note));
      const KubectlObject* const story = FindObject(*parts, "Job", run_.name);
      if (story == nullptr) {
        return absl::NotFoundError(absl::StrCat("the run ", run_.name, " was deleted"));
      }
      has_pods_ = HasItsPods(*parts, run_.name);
      if (has_pods_) notes_ = notes;
      const absl::Status told = Tell(notes);
      // What the wait is for counts more than a pod that can never work.
      if (is_over(*parts)) return absl::OkStatus();
      RETURN_IF_ERROR(told);
    }
    if (MonotonicMs() >= until_ms) {
      if (!parts.ok()) return absl::UnavailableError(parts.status().message());
      return absl::DeadlineExceededError(absl::StrCat(limit_ms / 1000, " s"));
    }
    if (wait_(kPollMs) != 0) return absl::CancelledError("stopped by a signal");
  }
}

absl::Status Submission::AwaitCoordinator() {
  absl::Status failed;
  const std::string pod = NameOfRole(run_.name, COORDINATOR) + "-0";
  const absl::Status status = Await(StartMs(), [&](const KubectlList& parts) {
    const KubectlObject* const coordinator = FindObject(parts, "Pod", pod);
    if (coordinator != nullptr && !IsBeingDeleted(*coordinator) && IsTrue(*coordinator, "Ready")) {
      return true;
    }
    if (!IsTrue(*FindObject(parts, "Job", run_.name), "Failed")) return false;
    failed = absl::FailedPreconditionError(
        absl::StrCat("the coordinator does not begin: ", WhyFailed(parts, run_.name)));
    return true;
  });
  if (!absl::IsDeadlineExceeded(status)) return status.ok() ? failed : status;
  // The end of the coordinator's log may say why.
  const absl::StatusOr<std::string> log =
      kubectl_->Run({"logs", pod, "--container=satrap", "--tail=3"});
  std::vector<std::string> why;
  if (!notes_.empty()) why.push_back(WithCures(notes_));
  if (log.ok() && !log->empty()) why.push_back(absl::StrCat("its log ends with ", OneLine(*log)));
  return absl::DeadlineExceededError(absl::StrCat(
      "the coordinator does not serve after ", status.message(), " (kubernetes.start_seconds): ",
      why.empty() ? "no reason is known" : absl::StrJoin(why, "; ")));
}

absl::Status Submission::AwaitPods() {
  absl::Status failed;
  // The run ends by itself after StartMs, and its Job a little later.
  const int64_t limit_ms = StartMs() + StartMs() / 10;
  const auto is_over = [&](const KubectlList& parts) {
    const KubectlObject& job = *FindObject(parts, "Job", run_.name);
    if (!HasEnded(job)) return has_pods_ && AllRun(parts);
    // The run's story tells all other causes of an end.
    if (IsTrue(job, "Failed") && !notes_.empty()) {
      failed = absl::FailedPreconditionError(absl::StrCat(
          "the run has failed: ", WhyFailed(parts, run_.name), "; ", WithCures(notes_)));
    }
    return true;
  };
  absl::Status status = Await(limit_ms, is_over);
  // The pods of a run that has failed remain until all processes are told of it.
  if (absl::IsDeadlineExceeded(status) && !notes_.empty()) status = Await(kToldMs, is_over);
  // The pod of Job RUN may have to wait, too, for a quota. Its controller tries to make it again
  // after pauses that double, so the pod may come about as late again.
  if (absl::IsDeadlineExceeded(status) && !has_pods_) status = Await(limit_ms + kGoneMs, is_over);
  if (absl::IsDeadlineExceeded(status)) return absl::OkStatus();
  return status.ok() ? failed : status;
}

absl::Status Submission::Remove() {
  const std::string members = NameOfMembersJob(run_.name);
  const std::string map = NameOfJobMap(run_);
  KubectlList objects;
  RETURN_IF_ERROR(kubectl_->Ask(
      {"get", absl::StrCat("jobs.batch/", run_.name), absl::StrCat("jobs.batch/", members),
       absl::StrCat("configmaps/", map), "--ignore-not-found"},
      &objects));
  const KubectlObject* const owner = FindObject(objects, "Job", members);
  const KubectlObject* const job = FindObject(objects, "ConfigMap", map);
  const KubectlObject* story = FindObject(objects, "Job", run_.name);
  if (story != nullptr && !IsOurs(*story)) story = nullptr;  // somebody else's
  const bool has_submitted = story != nullptr && IsOfThisCommand(*story);
  const bool is_owner = owner != nullptr && owner->metadata().uid() == run_.owner_uid;
  const bool is_made_here = owner != nullptr && story == nullptr && IsOfThisCommand(*owner);
  if (!has_submitted && !is_made_here) {
    if (owner == nullptr || !IsOurs(*owner)) return absl::OkStatus();
    if (story != nullptr) {
      return absl::FailedPreconditionError(absl::StrCat("another command has submitted the run ",
                                                        run_.name,
                                                        " meanwhile, and that run is in progress"));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "what an earlier command has made of the run is left there: give the same command again, "
        "or remove it by `satrap delete ",
        RunArgument(run_.name, run_.space), "`"));
  }
  std::vector<std::string> args = {"delete"};
  if (has_submitted) args.push_back(absl::StrCat("jobs.batch/", run_.name));
  if (is_owner || is_made_here) args.push_back(absl::StrCat("jobs.batch/", members));
  if (job != nullptr && IsOurs(*job)) args.push_back(absl::StrCat("configmaps/", map));
  for (const char* flag : {"--ignore-not-found", "--cascade=foreground", "--wait=false"}) {
    args.emplace_back(flag);
  }
  const absl::Status removed = kubectl_->Run(std::move(args)).status();
  if (removed.ok()) return removed;
  return absl::Status(removed.code(),
                      absl::StrCat("what was made is still there: ", removed.message()));
}

}  // namespace satrap
