#include "deploy/submit/pod_notes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "deploy/submit/manifests.h"

namespace satrap {
namespace {

// The reasons for which a container waits in a normal start.
constexpr absl::string_view kStarting[] = {"ContainerCreating", "PodInitializing"};
// The reasons for waiting that another attempt does not remove.
constexpr absl::string_view kFinal[] = {"InvalidImageName", "ErrImageNeverPull"};
// The reasons for waiting that may pass: a registry, a runtime or a device plugin may be busy for a
// moment. The kubelet says ImagePullBackOff after the first pull that fails.
constexpr absl::string_view kStuck[] = {"ErrImagePull", "ImagePullBackOff",
                                        "CreateContainerConfigError", "CreateContainerError",
                                        "RunContainerError"};
constexpr absl::string_view kPullFails[] = {"ErrImagePull"};
constexpr absl::string_view kPullWaits[] = {"ImagePullBackOff"};
constexpr absl::string_view kNoImage[] = {"InvalidImageName", "ErrImageNeverPull", "ErrImagePull",
                                          "ImagePullBackOff"};
constexpr absl::string_view kNoConfig[] = {"CreateContainerConfigError"};
constexpr absl::string_view kEndsAgain[] = {"CrashLoopBackOff"};
// How often a container may end by itself while the run starts. The kubelet's pauses before these
// starts take 30 s in all.
constexpr int64_t kMostEnds = 3;

// The reason of an event by which a controller reports that it cannot make a pod.
constexpr absl::string_view kNoPod[] = {"FailedCreate"};

template <typename Texts>
std::string ValueOf(const Texts& texts, absl::string_view name) {
  for (const KubectlText& text : texts) {
    if (text.name() == name) return text.value();
  }
  return "";
}

template <size_t size>
bool IsOneOf(const absl::string_view (&reasons)[size], absl::string_view reason) {
  return std::find(std::begin(reasons), std::end(reasons), reason) != std::end(reasons);
}

// "REASON, MESSAGE", or "REASON".
std::string Joined(const std::string& what, const std::string& message) {
  return message.empty() ? what : absl::StrCat(what, ", ", OneLine(message));
}

// Why a pull of the pod's image has just failed; empty if none has.
std::string PullErrorOf(const KubectlObject& pod) {
  for (const KubectlContainer& container : pod.status().containerstatuses()) {
    const KubectlWaiting& waiting = container.state().waiting();
    if (IsOneOf(kPullFails, waiting.reason())) return waiting.message();
  }
  return "";
}

// The field of the job that sets what a pod, or the pods of an object, request:
// "kubernetes.nn_worker" for NN workers. The pods of the two Jobs go to the same nodes as the
// coordinator.
std::string FieldOf(const KubectlObject& object) {
  const std::string part = LabelOf(object, kPartLabel);
  const bool is_job = part.empty() || part == "story" || part == "members" || part == kReaderPart;
  return absl::StrCat("kubernetes.",
                      is_job ? "coordinator" : absl::StrReplaceAll(part, {{"-", "_"}}));
}

std::string CureOf(absl::string_view reason) {
  if (IsOneOf(kNoImage, reason)) {
    return "correct the image (--image), or give the nodes a login for its registry "
           "(imagePullSecrets in kubernetes.pod_patch)";
  }
  if (IsOneOf(kNoConfig, reason)) {
    return "make the missing object, such as a Secret, or correct the job";
  }
  if (IsOneOf(kEndsAgain, reason)) return "correct what it says";
  return "look at the node's kubelet, and at kubernetes.pod_patch";
}

void AddNoteOf(const KubectlContainer& container, const std::string& pod,
               const std::string& pull_error, std::vector<PodNote>* notes) {
  const KubectlWaiting& waiting = container.state().waiting();
  if (waiting.reason().empty() || IsOneOf(kStarting, waiting.reason())) return;
  // The container's last message says more than that the container has ended.
  std::string more = container.laststate().terminated().message();
  if (IsOneOf(kPullWaits, waiting.reason())) more = pull_error;
  PodNote note;
  note.object = pod;
  note.text = Joined(waiting.reason(), more.empty() ? waiting.message() : more);
  note.cure = CureOf(waiting.reason());
  note.is_stuck = IsOneOf(kStuck, waiting.reason());
  note.is_final = IsOneOf(kFinal, waiting.reason()) ||
                  (IsOneOf(kEndsAgain, waiting.reason()) && container.restartcount() >= kMostEnds);
  notes->push_back(std::move(note));
}

}  // namespace

std::string LineOf(const PodNote& note) { return absl::StrCat(note.object, ": ", note.text); }

std::string WithCures(const std::vector<PodNote>& notes) {
  std::vector<std::string> texts;
  for (const PodNote& note : notes) texts.push_back(LineOf(note));
  for (const PodNote& note : notes) {
    const bool is_new = std::find(texts.begin(), texts.end(), note.cure) == texts.end();
    if (is_new && !note.cure.empty()) texts.push_back(note.cure);
  }
  return absl::StrJoin(texts, "; ");
}

std::string OneLine(absl::string_view text) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(text), {{"\n", " "}});
}

std::string LabelOf(const KubectlObject& object, absl::string_view name) {
  return ValueOf(object.metadata().labels(), name);
}

std::string AnnotationOf(const KubectlObject& object, absl::string_view name) {
  return ValueOf(object.metadata().annotations(), name);
}

bool IsTrue(const KubectlObject& object, absl::string_view condition) {
  const auto& conditions = object.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(), [&](const KubectlCondition& each) {
    return each.type() == condition && each.status() == "True";
  });
}

std::vector<PodNote> NotesOf(const KubectlObject& pod, const std::string& pull_error) {
  if (pod.metadata().has_deletiontimestamp()) return {};
  std::vector<PodNote> notes;
  const std::string& name = pod.metadata().name();
  for (const KubectlCondition& condition : pod.status().conditions()) {
    if (condition.type() == "PodScheduled" && condition.status() == "False") {
      PodNote note;
      note.object = name;
      note.text = Joined(pod.status().phase(), condition.message());
      note.cure = absl::StrCat(
          "add nodes that have what the pod requests, check that its claims can be "
          "bound, or reduce its requests (",
          FieldOf(pod), ")");
      notes.push_back(std::move(note));
    }
  }
  for (const auto& container : pod.status().initcontainerstatuses()) {
    AddNoteOf(container, name, pull_error, &notes);
  }
  for (const auto& container : pod.status().containerstatuses()) {
    AddNoteOf(container, name, pull_error, &notes);
  }
  return notes;
}

std::vector<Missing> MissingPods(const KubectlList& parts) {
  std::vector<Missing> missing;
  for (const KubectlObject& object : parts.items()) {
    if (object.kind() == "Pod" || object.metadata().has_deletiontimestamp()) continue;
    const bool has_ended = IsTrue(object, "Complete") || IsTrue(object, "Failed");
    const int64_t wanted =
        object.kind() == "StatefulSet" ? object.spec().replicas() : (has_ended ? 0 : 1);
    const auto pods = std::count_if(
        parts.items().begin(), parts.items().end(), [&object](const KubectlObject& each) {
          return each.kind() == "Pod" && LabelOf(each, kPartLabel) == LabelOf(object, kPartLabel);
        });
    if (pods < wanted) missing.push_back({&object, wanted - pods});
  }
  return missing;
}

std::vector<PodNote> NotesOfEvents(const KubectlList& parts, const KubectlList& events) {
  std::vector<PodNote> notes;
  for (const Missing& missing : MissingPods(parts)) {
    const KubectlObject& owner = *missing.owner;
    for (auto event = events.items().rbegin(); event != events.items().rend(); ++event) {
      // An object of an earlier run may have had the same name.
      const bool is_own = event->involvedobject().uid() == owner.metadata().uid();
      if (!is_own || !IsOneOf(kNoPod, event->reason())) continue;
      PodNote note;
      note.object = absl::StrCat(owner.kind(), " ", owner.metadata().name());
      note.text = Joined("cannot make a pod", event->message());
      note.cure = absl::StrCat(
          "have the cause removed, such as a low quota, delete other runs, or "
          "reduce what the pod requests (",
          FieldOf(owner), ")");
      notes.push_back(std::move(note));
      break;
    }
  }
  return notes;
}

std::vector<PodNote> PodWatch::Notes(const KubectlList& parts, int64_t now_ms) {
  std::vector<PodNote> all;
  std::map<std::string, Stuck> stuck;
  for (const KubectlObject& pod : parts.items()) {
    if (pod.kind() != "Pod") continue;
    const std::string key = absl::StrCat(pod.metadata().name(), " ", pod.metadata().uid());
    const auto before = stuck_.find(key);
    Stuck now = before == stuck_.end() ? Stuck{now_ms, ""} : before->second;
    const std::string pull_error = PullErrorOf(pod);
    if (!pull_error.empty()) now.pull_error = pull_error;
    for (PodNote& note : NotesOf(pod, now.pull_error)) {
      if (note.is_stuck) {
        note.is_final = note.is_final || now_ms - now.since_ms >= kStuckMs;
        stuck[key] = now;
      }
      all.push_back(std::move(note));
    }
  }
  stuck_ = std::move(stuck);
  return all;
}

}  // namespace satrap
