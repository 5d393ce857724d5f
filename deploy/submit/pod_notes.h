// Tells from the output of `kubectl get` why the pods of a run do not work yet.
//
// Thread-safe: functions of their arguments. PodWatch is not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_POD_NOTES_H_
#define SATRAP_DEPLOY_SUBMIT_POD_NOTES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/kubectl.pb.h"

namespace satrap {

struct PodNote {
  std::string object;  // "demo-nn-worker-1", "StatefulSet demo-nn-worker"
  std::string text;    // for people, one line: "Pending, 0/3 nodes are available"
  // The reason may pass, for example if a registry refuses a pull for a moment. It is final if it
  // lasts.
  bool is_stuck = false;
  // Waiting does not help, for example if the image's name is not valid.
  bool is_final = false;
  std::string cure;  // what to do if it lasts
};

// "demo-nn-worker-1: Pending, 0/3 nodes are available"
std::string LineOf(const PodNote& note);

// The lines of the notes, then each of their cures once, all in one line; "" if there are no notes.
std::string WithCures(const std::vector<PodNote>& notes);

// The text without its line ends.
std::string OneLine(absl::string_view text);

// The value of a label or an annotation; empty if the object has none of that name.
std::string LabelOf(const KubectlObject& object, absl::string_view name);
std::string AnnotationOf(const KubectlObject& object, absl::string_view name);

// Whether the condition of that type is true.
bool IsTrue(const KubectlObject& object, absl::string_view condition);

// Why the pod does not work yet: one note for each reason. Empty if it works, is just starting, or
// is being deleted. `pull_error` says why a pull of its image failed before, because the kubelet
// does not say it while it waits for the next attempt; empty: not known.
std::vector<PodNote> NotesOf(const KubectlObject& pod, const std::string& pull_error = "");

// The StatefulSets and Jobs among `parts` that lack pods, and how many. A Job that has ended lacks
// none, nor does an object that is being deleted.
struct Missing {
  const KubectlObject* owner;  // one of `parts`
  int64_t pods;
};
std::vector<Missing> MissingPods(const KubectlList& parts);

// Why the objects that lack pods cannot make them: one note for each, from its newest event.
// REQUIRES: `events` are sorted by time
std::vector<PodNote> NotesOfEvents(const KubectlList& parts, const KubectlList& events);

// Follows the pods of a run, and knows for how long each of them has been stuck.
class PodWatch {
 public:
  static constexpr int64_t kStuckMs = 60000;

  // Returns the notes of the pods among `parts`. `now_ms` is MonotonicMs(). If a pod was stuck at
  // every call for kStuckMs, its notes are final.
  std::vector<PodNote> Notes(const KubectlList& parts, int64_t now_ms);

 private:
  struct Stuck {
    int64_t since_ms;
    std::string pull_error;  // the last; empty: none
  };
  std::map<std::string, Stuck> stuck_;  // by the pod's name and uid
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_POD_NOTES_H_
