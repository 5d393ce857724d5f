// What Kubernetes waits for before the pods of a run can work, from what `kubectl get` prints.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_SUBMIT_POD_NOTES_H_
#define SATRAP_DEPLOY_SUBMIT_POD_NOTES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/kubectl.pb.h"

namespace satrap {

struct PodNote {
  std::string text;  // for people, one line: "demo-nn-worker-1: Pending, 0/3 nodes are available"
  // Waiting does not help: the image cannot be pulled, or the container cannot be started.
  bool is_final = false;
};

// The value of a label or an annotation; empty if the object has none of that name.
std::string LabelOf(const KubectlObject& object, absl::string_view name);
std::string AnnotationOf(const KubectlObject& object, absl::string_view name);

// Whether the condition of that type is true.
bool IsTrue(const KubectlObject& object, absl::string_view condition);

// Why the pod does not work yet: a note for each reason. Empty if it works, or is just starting.
std::vector<PodNote> NotesOf(const KubectlObject& pod);

// Why the controller of `name` makes no pod, by its events: the newest; empty if there is none.
std::vector<PodNote> NotesOfEvents(const KubectlList& events, absl::string_view name);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_POD_NOTES_H_
