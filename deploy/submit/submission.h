// Submits a run to a Kubernetes cluster with kubectl. If that fails, removes what was made.
//
// Objects are made by `kubectl create`, never by `kubectl apply`, which mistakes an object that is
// being deleted for one that stays. Job RUN-members is made first, because it owns all but Job RUN,
// and only the cluster knows its uid. Job RUN is made last: the command whose `create` of it
// succeeds is the one that has submitted the run. If a submission was broken off, another
// submission of the same job completes it, and recognises its objects by their identity
// (manifests.h). What other commands or other people have made is never removed.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_SUBMISSION_H_
#define SATRAP_DEPLOY_SUBMIT_SUBMISSION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/manifests.h"
#include "deploy/submit/pod_notes.h"
#include "proto/kubectl.pb.h"

namespace satrap {

// Checks what can be checked without a cluster: names, the image, and that the job is not too large
// for a ConfigMap. The message of INVALID_ARGUMENT says what is wrong, and what is expected.
absl::Status CheckRun(const RunInCluster& run);

// Turns a patch of a pod, in YAML or JSON, into a patch of an object that has a pod template.
// INVALID_ARGUMENT if the text does not hold one document; `file` names the text in the error.
absl::StatusOr<std::string> PatchOfTemplate(const std::string& pod_patch, const std::string& file);

// The object's text. If the object has pods, the patch of PatchOfTemplate is merged into it, which
// needs kubectl. Errors are those of Kubectl::Run.
absl::StatusOr<std::string> PatchedText(const Manifest& manifest, const std::string& template_patch,
                                        Kubectl* kubectl);

// The text of MembersJob and OwnedManifests without owners. The patch is merged into each object
// that has pods, which needs kubectl, but no cluster. Errors are those of Kubectl::Run.
absl::StatusOr<std::string> PatchedManifests(RunInCluster run, Kubectl* kubectl);

class Submission {
 public:
  // Prints a line for people.
  using Say = std::function<void(const std::string& line)>;
  // Waits for `timeout_ms`. Returns the signal that ended the wait, or 0 (WaitForSignal).
  using Wait = std::function<int(int64_t timeout_ms)>;

  // `run` has no identity and no owner yet. `kubectl` is not owned. REQUIRES: CheckRun(run) is OK
  Submission(RunInCluster run, Kubectl* kubectl, Say say, Wait wait);

  // Checks that the cluster has the claims and secrets that the job names, and that all pods can
  // use the claims. NOT_FOUND, FAILED_PRECONDITION, or the errors of Kubectl::Run.
  absl::Status CheckCluster();

  // Makes the objects or, if an earlier command was broken off, those that are missing. If the run
  // was submitted before, first waits until the pods and objects of the previous submission are
  // gone, and then replaces its Job RUN. ALREADY_EXISTS: there is a run of that name; if another
  // command has submitted the same at the same time, what this one has made is part of it.
  // FAILED_PRECONDITION: other objects of these names, or pods of an earlier run, are
  // there or are still being deleted; or kubectl has failed, and what was made is removed again.
  // REQUIRES: called once
  absl::Status Create();

  // Waits until the coordinator serves, and meanwhile says what Kubernetes waits for.
  // FAILED_PRECONDITION: a pod can never work, or the run has failed. NOT_FOUND: the run was
  // deleted. DEADLINE_EXCEEDED: kubernetes.start_seconds are over. UNAVAILABLE: they are over, but
  // the cluster does not answer, so the run's state is not known. CANCELLED: a signal came.
  // REQUIRES: Create was OK
  absl::Status AwaitCoordinator();

  // Waits until all pods run or the run has ended, and meanwhile says what Kubernetes waits for.
  // Also returns OK a while after kubernetes.start_seconds are over, because then the run ends by
  // itself. FAILED_PRECONDITION: a pod can never work, or the run has failed before all its pods
  // ran. Other errors are those of AwaitCoordinator. REQUIRES: AwaitCoordinator was OK
  absl::Status AwaitPods();

  // Begins to remove the run that this command has submitted, or what the command has made of it.
  // FAILED_PRECONDITION: another command has made the objects that are there, and nothing is
  // removed. Other errors are those of Kubectl::Run.
  absl::Status Remove();

  // As it was created.
  const RunInCluster& run() const { return run_; }
  // The namespace of the objects, as the cluster names it; empty before Create.
  const std::string& space() const { return space_; }

 private:
  // The objects in the cluster that have the names of this submission's objects.
  absl::StatusOr<KubectlList> Objects();
  absl::Status CheckFree(const KubectlList& objects) const;
  // Waits until the objects of the earlier submission are gone, except its Job RUN, which stays
  // until the end. Then removes that Job from `objects`.
  absl::Status AwaitEarlier(KubectlList* objects);
  // An object of the earlier submission that is still there; empty if there is none.
  // FAILED_PRECONDITION: the earlier submission has not ended.
  absl::StatusOr<std::string> EarlierIn(const KubectlList& objects);
  // Removes Job RUN of an earlier submission.
  absl::Status RemoveEarlierStory();
  // Fails if a pod of an earlier run is still there. It would be mistaken for one of this run.
  absl::Status CheckPodsAreGone();
  bool IsOurs(const KubectlObject& object) const;
  bool IsOfThisCommand(const KubectlObject& object) const;
  // Makes the object, unless another command has made it meanwhile for the same submission. Returns
  // its uid.
  absl::StatusOr<std::string> Make(const Manifest& manifest);
  absl::Status CreateAll(const KubectlList& objects);
  // Shows each note that has not been shown before. FAILED_PRECONDITION if one of them is final.
  absl::Status Tell(const std::vector<PodNote>& notes);
  // Waits until `is_over` is true of the run's parts, but at most `limit_ms`.
  absl::Status Await(int64_t limit_ms,
                     const std::function<bool(const KubectlList& parts)>& is_over);
  // kubernetes.start_seconds, in milliseconds.
  int64_t StartMs() const;

  RunInCluster run_;
  Kubectl* const kubectl_;
  const Say say_;
  const Wait wait_;
  PodWatch watch_;
  std::string space_;
  std::vector<std::string> told_;  // lines of notes
  // When the run was last seen: whether it had its pods (HasItsPods); and the notes when it last
  // had them.
  bool has_pods_ = true;
  std::vector<PodNote> notes_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_SUBMISSION_H_
