// Finds the objects of a run in a cluster by their labels or names, and has the words by which
// messages name the run.
//
// Functions that ask kubectl are not thread-safe. The others depend only on their arguments.

#ifndef SATRAP_DEPLOY_SUBMIT_RUN_OBJECTS_H_
#define SATRAP_DEPLOY_SUBMIT_RUN_OBJECTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/pod_notes.h"
#include "proto/kubectl.pb.h"

namespace satrap {

// The kinds of all objects that a submission makes.
inline constexpr char kKindsOfRun[] = "jobs.batch,services,configmaps,statefulsets.apps";

// "--selector=..." for the run's objects. `part` is a value of kPartLabel; empty: any part.
std::string SelectorOf(absl::string_view run, absl::string_view part = "");

// "namespace ml", or "the namespace of your context".
std::string SpaceText(absl::string_view space);
// The run as an argument of a command: "demo --namespace ml", or "demo".
std::string RunArgument(absl::string_view run, absl::string_view space);
// NOT_FOUND: there is no such run.
absl::Status NoRun(absl::string_view run, const Kubectl& kubectl);

// Null if it is not among them.
const KubectlObject* FindObject(const KubectlList& objects, absl::string_view kind,
                                absl::string_view name);
// The newest of the pods of that part; null if there is none.
const KubectlObject* NewestPod(const KubectlList& objects, absl::string_view part);

// The submission of the object; 0 if the object does not name it.
int SubmissionOf(const KubectlObject& object);

bool IsBeingDeleted(const KubectlObject& object);
// Whether the pod only reads the folder of a run (run_reader.h). It is no process of the run.
bool IsReader(const KubectlObject& pod);
// Whether a Job has ended.
bool HasEnded(const KubectlObject& job);
// Whether the run with these parts may still have its pods. They are removed as soon as Job
// RUN-members has ended, some time before Job RUN ends.
bool HasItsPods(const KubectlList& parts, absl::string_view run);
// Whether all pods of the StatefulSets run, and the pod of Job RUN, too.
bool AllRun(const KubectlList& parts);
// The termination message of a container of the pod that has ended; empty if there is none.
std::string LastWordsOf(const KubectlObject& pod);
// LastWordsOf the newest pod of Job RUN among the objects of a run; empty if there is no such pod.
std::string LastWordsOfStory(const KubectlList& objects);

// The Jobs, StatefulSets and pods of the run. Errors as Kubectl::Ask.
absl::StatusOr<KubectlList> PartsOf(absl::string_view run, Kubectl* kubectl);

// Why those of `parts` that lack a pod cannot make it, from the events of the namespace. Asks for
// the events only if a pod is missing. Empty also if kubectl fails.
std::vector<PodNote> NotesOfMissing(const KubectlList& parts, Kubectl* kubectl);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_RUN_OBJECTS_H_
