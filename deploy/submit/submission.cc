#include "deploy/submit/submission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/config/kubernetes_names.h"
#include "common/numeric/hash.h"
#include "common/thread/clock.h"
#include "deploy/submit/pod_notes.h"

namespace satrap {
namespace {

constexpr int64_t kPeriodMs = 1000;
// A ConfigMap holds 1 MiB, of which some is for its other fields.
constexpr size_t kMostJobBytes = 1000000;

const KubectlObject* Find(const KubectlList& objects, const std::string& kind,
                          const std::string& name) {
  for (const KubectlObject& object : objects.items()) {
    if (object.kind() == kind && object.metadata().name() == name) return &object;
  }
  return nullptr;
}

bool HasAccess(const KubectlObject& claim, absl::string_view mode) {
  const auto& modes = claim.spec().accessmodes();
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

std::string SpaceText(const std::string& space) {
  return space.empty() ? "the namespace of your context" : absl::StrCat("namespace ", space);
}

// The object's text, with the patch merged in if it has pods.
absl::StatusOr<std::string> Patched(const Manifest& manifest, const std::string& template_patch,
                                    Kubectl* kubectl) {
  const std::string text = manifest.object.Text();
  if (!manifest.has_pods || template_patch.empty()) return text;
  return kubectl->Run({"patch", "--local", "--filename=-", "--type=strategic",
                       absl::StrCat("--patch=", template_patch), "--output=yaml"},
                      text);
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
  std::string patch = "spec:\n  template:\n";
  bool has_content = false;
  for (const absl::string_view line : absl::StrSplit(pod_patch, '\n')) {
    if (absl::StartsWith(line, "---")) {
      if (!has_content) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("kubernetes.pod_patch: ", file, " must hold one document, and has several"));
    }
    const bool is_comment = absl::StartsWith(line, "#");
    has_content = has_content || !(line.empty() || is_comment);
    absl::StrAppend(&patch, line.empty() ? "" : "    ", line, "\n");
  }
  if (has_content) return patch;
  return absl::InvalidArgumentError(
      absl::StrCat("kubernetes.pod_patch: ", file, " must hold a part of a pod, and is empty"));
}

absl::StatusOr<std::string> PatchedManifests(RunInCluster run, const std::string& template_patch,
                                             Kubectl* kubectl) {
  run.owner_uid.clear();
  if (template_patch.empty()) return ManifestsText(std::move(run));
  ASSIGN_OR_RETURN(std::string text, Patched(MembersJob(run), template_patch, kubectl));
  for (const Manifest& manifest : OwnedManifests(run)) {
    ASSIGN_OR_RETURN(const std::string next, Patched(manifest, template_patch, kubectl));
    absl::StrAppend(&text, "---\n", next);
  }
  return text;
}

Submission::Submission(RunInCluster run, std::string template_patch, Kubectl* kubectl, Say say,
                       Wait wait)
    : run_(std::move(run)),
      template_patch_(std::move(template_patch)),
      kubectl_(kubectl),
      say_(std::move(say)),
      wait_(std::move(wait)) {
  run_.identity =
      absl::StrCat(absl::Hex(Xxh64(ManifestsText(run_) + template_patch_), absl::kZeroPad16));
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
  KubectlList objects;
  RETURN_IF_ERROR(
      kubectl_->Ask({"get", "jobs.batch,services,configmaps,statefulsets.apps",
                     absl::StrCat("--selector=", kAppLabel, "=satrap,", kRunLabel, "=", run_.name)},
                    &objects));
  return objects;
}

bool Submission::IsOurs(const KubectlObject& object, const std::string& kind) const {
  if (AnnotationOf(object, kIdentityAnnotation) != run_.identity) return false;
  const auto& owners = object.metadata().ownerreferences();
  // The two Jobs have no owner.
  return kind == "Job" || (owners.size() == 1 && owners[0].uid() == run_.owner_uid);
}

absl::Status Submission::CheckFree(const KubectlList& objects) const {
  for (const KubectlObject& object : objects.items()) {
    if (!object.metadata().has_deletiontimestamp()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(object.kind(), " ", object.metadata().name(), " of an earlier run ", run_.name,
                     " is still being deleted: give the command again when it is gone"));
  }
  if (Find(objects, "Job", run_.name) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "there is a run ", run_.name, " in ", SpaceText(run_.space),
        ": choose another name by --name, or remove it by `satrap delete ", run_.name, "`"));
  }
  for (const KubectlObject& object : objects.items()) {
    if (IsOurs(object, object.kind())) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        object.kind(), " ", object.metadata().name(),
        " is there from another submission of the name ", run_.name,
        ": choose another name by --name, or remove it by `satrap delete ", run_.name, "`"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Submission::Make(const Manifest& manifest) {
  ASSIGN_OR_RETURN(const std::string text, Patched(manifest, template_patch_, kubectl_));
  KubectlObject made;
  const absl::Status status = kubectl_->Ask({"create", "--filename=-"}, &made, text);
  if (status.ok()) return made.metadata().uid();
  const absl::StatusOr<KubectlList> objects = Objects();
  if (!objects.ok()) return status;
  const KubectlObject* const found = Find(*objects, manifest.kind, manifest.name);
  if (found == nullptr || !IsOurs(*found, manifest.kind)) return status;
  // Another command made it meanwhile, or this one, and the answer was lost.
  if (manifest.kind == "Job" && manifest.name == run_.name) {
    return absl::AlreadyExistsError(absl::StrCat("another command has just submitted the run ",
                                                 run_.name, ", and this one has changed nothing"));
  }
  return found->metadata().uid();
}

absl::Status Submission::CreateAll(const KubectlList& objects) {
  for (const Manifest& manifest : OwnedManifests(run_)) {
    if (Find(objects, manifest.kind, manifest.name) != nullptr) continue;
    RETURN_IF_ERROR(Make(manifest).status());
  }
  return absl::OkStatus();
}

absl::Status Submission::Create() {
  ASSIGN_OR_RETURN(const KubectlList objects, Objects());
  const KubectlObject* const members = Find(objects, "Job", NameOfMembersJob(run_.name));
  if (members != nullptr) run_.owner_uid = members->metadata().uid();
  RETURN_IF_ERROR(CheckFree(objects));
  if (members == nullptr) {
    ASSIGN_OR_RETURN(run_.owner_uid, Make(MembersJob(run_)));
  } else {
    say_(absl::StrCat("completes the submission of ", run_.name, " that was broken off"));
  }
  const absl::Status created = CreateAll(objects);
  if (created.ok() || absl::IsAlreadyExists(created)) return created;
  const absl::Status removed = Remove();
  if (removed.ok()) return created;
  return absl::Status(created.code(),
                      absl::StrCat(created.message(), "\nand what was made before is still there: ",
                                   removed.message()));
}

absl::Status Submission::TellNotes(const KubectlList& pods) {
  std::vector<PodNote> notes;
  bool has_coordinator = false;
  for (const KubectlObject& pod : pods.items()) {
    for (PodNote& note : NotesOf(pod)) notes.push_back(std::move(note));
    has_coordinator =
        has_coordinator || pod.metadata().name() == NameOfRole(run_.name, COORDINATOR) + "-0";
  }
  if (!has_coordinator) {
    // Without them the wait only has less to say.
    KubectlList events;
    kubectl_
        ->Ask({"get", "events", "--field-selector=type=Warning", "--sort-by=.lastTimestamp"},
              &events)
        .IgnoreError();
    for (PodNote& note : NotesOfEvents(events, NameOfRole(run_.name, COORDINATOR))) {
      notes.push_back(std::move(note));
    }
  }
  for (const PodNote& note : notes) {
    if (note.is_final) return absl::FailedPreconditionError(note.text);
    if (std::find(told_.begin(), told_.end(), note.text) != told_.end()) continue;
    told_.push_back(note.text);
    say_(note.text);
  }
  return absl::OkStatus();
}

absl::Status Submission::AwaitCoordinator() {
  const auto limit_ms = static_cast<int64_t>(run_.job.kubernetes().start_seconds() * 1000);
  const int64_t until_ms = MonotonicMs() + limit_ms;
  const std::string selector =
      absl::StrCat("--selector=", kAppLabel, "=satrap,", kRunLabel, "=", run_.name);
  while (true) {
    KubectlList pods;
    // A cluster that does not answer for a while is asked again.
    const absl::Status asked = kubectl_->Ask({"get", "pods", selector}, &pods);
    for (const KubectlObject& pod : pods.items()) {
      if (pod.metadata().name() == NameOfRole(run_.name, COORDINATOR) + "-0" &&
          IsTrue(pod, "Ready")) {
        return absl::OkStatus();
      }
    }
    if (asked.ok()) RETURN_IF_ERROR(TellNotes(pods));
    if (MonotonicMs() >= until_ms) {
      const std::string why = !asked.ok()     ? std::string(asked.message())
                              : told_.empty() ? "it does not say why"
                                              : absl::StrJoin(told_, "; ");
      return absl::DeadlineExceededError(absl::StrCat("the coordinator does not serve after ",
                                                      limit_ms / 1000,
                                                      " s (kubernetes.start_seconds): ", why));
    }
    if (wait_(kPeriodMs) != 0) return absl::CancelledError("stopped by a signal");
  }
}

absl::Status Submission::Remove() {
  return kubectl_
      ->Run({"delete", "jobs.batch", run_.name, NameOfMembersJob(run_.name), "--ignore-not-found",
             "--cascade=background", "--wait=false"})
      .status();
}

}  // namespace satrap
