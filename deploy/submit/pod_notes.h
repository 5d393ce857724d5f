// What Kubernetes waits for before the pods of a run can work, from what `kubectl get` prints.
//
// Thread-safe: functions of their arguments. Not PodWatch.

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
  // It may pass, as a pull that a registry refuses for a moment does, but not if it lasts.
  bool is_stuck = false;
  // Waiting does not help: the name of the image is none, say.
  bool is_final = false;
  std::string cure;  // what to do, if it lasts
};

// "demo-nn-worker-1: Pending, 0/3 nodes are available"
std::string LineOf(const PodNote& note);

// The lines of the notes, and then their cures, each once, in one line; "" without notes.
std::string WithCures(const std::vector<PodNote>& notes);

// The text without its line ends.
std::string OneLine(absl::string_view text);

// The value of a label or an annotation; empty if the object has none of that name.
std::string LabelOf(const KubectlObject& object, absl::string_view name);
std::string AnnotationOf(const KubectlObject& object, absl::string_view name);

// Whether the condition of that type is true.
bool IsTrue(const KubectlObject& object, absl::string_view condition);

// Why the pod does not work yet: a note for each reason. Empty if it works, is just starting, or is
// being deleted. `pull_error`: why its image could not be pulled before, which the kubelet does not
// say while it waits for the next attempt; empty: not known.
std::vector<PodNote> NotesOf(const KubectlObject& pod, const std::string& pull_error = "");

// The StatefulSets and Jobs among `parts`, and how many pods each of them lacks. A Job that has
// ended, and what is being deleted, lacks none.
struct Missing {
  const KubectlObject* owner;  // one of `parts`
  int64_t pods;
};
std::vector<Missing> MissingPods(const KubectlList& parts);

// Why those that lack pods cannot make them: for each the newest of its events, which are sorted by
// time.
std::vector<PodNote> NotesOfEvents(const KubectlList& parts, const KubectlList& events);

// Follows the pods of a run, and knows for how long each of them has been stuck.
class PodWatch {
 public:
  static constexpr int64_t kStuckMs = 60000;

  // The notes of the pods among `parts` as they are now; `now_ms` is of MonotonicMs. Those of a pod
  // that has been stuck for kStuckMs, seen at every call, are final.
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
