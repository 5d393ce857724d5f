#include "deploy/submit/run_objects.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "deploy/submit/manifests.h"

namespace satrap {

std::string SelectorOf(absl::string_view run, absl::string_view part) {
  std::string selector = absl::StrCat("--selector=", kAppLabel, "=satrap");
  if (!run.empty()) absl::StrAppend(&selector, ",", kRunLabel, "=", run);
  if (!part.empty()) absl::StrAppend(&selector, ",", kPartLabel, "=", part);
  return selector;
}

std::string SpaceText(absl::string_view space) {
  return space.empty() ? "the namespace of your context" : absl::StrCat("namespace ", space);
}

std::string RunArgument(absl::string_view run, absl::string_view space) {
  return space.empty() ? std::string(run) : absl::StrCat(run, " --namespace ", space);
}

absl::Status NoRun(absl::string_view run, const Kubectl& kubectl) {
  return absl::NotFoundError(
      absl::StrCat("there is no run ", run, " in ", SpaceText(kubectl.space())));
}

const KubectlObject* FindObject(const KubectlList& objects, absl::string_view kind,
                                absl::string_view name) {
  for (const KubectlObject& object : objects.items()) {
    if (object.kind() == kind && object.metadata().name() == name) return &object;
  }
  return nullptr;
}

const KubectlObject* NewestPod(const KubectlList& objects, absl::string_view part) {
  const KubectlObject* newest = nullptr;
  for (const KubectlObject& object : objects.items()) {
    if (object.kind() != "Pod" || LabelOf(object, kPartLabel) != part) continue;
    // Times in this format sort like texts.
    if (newest == nullptr ||
        newest->metadata().creationtimestamp() <= object.metadata().creationtimestamp()) {
      newest = &object;
    }
  }
  return newest;
}

int SubmissionOf(const KubectlObject& object) {
  int submission = 0;
  return absl::SimpleAtoi(AnnotationOf(object, kSubmissionAnnotation), &submission) ? submission
                                                                                    : 0;
}

bool IsBeingDeleted(const KubectlObject& object) {
  return object.metadata().has_deletiontimestamp();
}

bool IsReader(const KubectlObject& pod) { return LabelOf(pod, kPartLabel) == kReaderPart; }

bool HasEnded(const KubectlObject& job) { return IsTrue(job, "Complete") || IsTrue(job, "Failed"); }

bool HasItsPods(const KubectlList& parts, absl::string_view run) {
  const KubectlObject* const members = FindObject(parts, "Job", NameOfMembersJob(run));
  const KubectlObject* const story = FindObject(parts, "Job", run);
  return members != nullptr && !HasEnded(*members) && story != nullptr && !HasEnded(*story);
}

bool AllRun(const KubectlList& parts) {
  if (!MissingPods(parts).empty()) return false;
  return std::all_of(parts.items().begin(), parts.items().end(), [](const KubectlObject& each) {
    if (each.kind() != "Pod") return true;
    const std::string& phase = each.status().phase();
    // The pod of a Job may have ended.
    return (phase == "Running" && !IsBeingDeleted(each)) || phase == "Succeeded" ||
           phase == "Failed";
  });
}

std::string LastWordsOf(const KubectlObject& pod) {
  for (const KubectlContainer& container : pod.status().containerstatuses()) {
    const std::string& words = container.state().terminated().message();
    if (!words.empty()) return OneLine(words);
  }
  return "";
}

std::string LastWordsOfStory(const KubectlList& objects) {
  const KubectlObject* const story = NewestPod(objects, "story");
  return story == nullptr ? "" : LastWordsOf(*story);
}

absl::StatusOr<KubectlList> PartsOf(absl::string_view run, Kubectl* kubectl) {
  KubectlList parts;
  RETURN_IF_ERROR(
      kubectl->Ask({"get", "jobs.batch,statefulsets.apps,pods", SelectorOf(run)}, &parts));
  return parts;
}

std::vector<PodNote> NotesOfMissing(const KubectlList& parts, Kubectl* kubectl) {
  if (MissingPods(parts).empty()) return {};
  KubectlList events;
  // Without the events there are only fewer notes.
  kubectl
      ->Ask({"get", "events", "--field-selector=reason=FailedCreate", "--sort-by=.lastTimestamp"},
            &events)
      .IgnoreError();
  return NotesOfEvents(parts, events);
}

}  // namespace satrap
