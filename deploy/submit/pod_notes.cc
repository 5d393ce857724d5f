#include "deploy/submit/pod_notes.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace satrap {
namespace {

// The reasons of a container that waits as it should.
constexpr absl::string_view kStarting[] = {"ContainerCreating", "PodInitializing"};
// The kubelet says the first of these when it has tried more than once, and the others when trying
// again cannot help, or when a program has ended again and again.
constexpr absl::string_view kFinal[] = {
    "ImagePullBackOff",     "InvalidImageName",  "ErrImageNeverPull", "CreateContainerConfigError",
    "CreateContainerError", "RunContainerError", "CrashLoopBackOff"};

// The reason of the event by which the controller of a set says that it may make no pod.
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

std::string OneLine(absl::string_view text) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(text), {{"\n", " "}});
}

// "REASON, MESSAGE", or "REASON".
std::string Joined(const std::string& what, const std::string& message) {
  return message.empty() ? what : absl::StrCat(what, ", ", OneLine(message));
}

}  // namespace

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

std::vector<PodNote> NotesOf(const KubectlObject& pod) {
  std::vector<PodNote> notes;
  const std::string begin = absl::StrCat(pod.metadata().name(), ": ");
  for (const KubectlCondition& condition : pod.status().conditions()) {
    if (condition.type() == "PodScheduled" && condition.status() == "False") {
      notes.push_back({begin + Joined(pod.status().phase(), condition.message())});
    }
  }
  for (const KubectlContainer& container : pod.status().containerstatuses()) {
    const KubectlWaiting& waiting = container.state().waiting();
    if (waiting.reason().empty() || IsOneOf(kStarting, waiting.reason())) continue;
    // Its last words say more than that it has ended.
    const std::string& last = container.laststate().terminated().message();
    notes.push_back({begin + Joined(waiting.reason(), last.empty() ? waiting.message() : last),
                     IsOneOf(kFinal, waiting.reason())});
  }
  return notes;
}

std::vector<PodNote> NotesOfEvents(const KubectlList& events, absl::string_view name) {
  for (auto event = events.items().rbegin(); event != events.items().rend(); ++event) {
    if (event->involvedobject().name() != name || !IsOneOf(kNoPod, event->reason())) continue;
    return {{absl::StrCat(name, ": ", Joined("no pod can be made", event->message()))}};
  }
  return {};
}

}  // namespace satrap
