// Brings a run into a Kubernetes cluster by kubectl. If that fails, what it has made is removed.
//
// Objects are made by `kubectl create`, and never by `apply`, which takes an object that is being
// deleted for one that is there. Job RUN-members is made first, because it owns all but Job RUN,
// and only the cluster knows its uid. Job RUN is made last: the command whose `create` of it
// succeeds is the one that has submitted the run. A submission that was broken off is completed by
// another one of the same job; its objects are known by their identity (manifests.h). What another
// command has made, or anybody else, is never removed.
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
// for a ConfigMap. INVALID_ARGUMENT says what is wrong with which, and what is expected.
absl::Status CheckRun(const RunInCluster& run);

// A part of a pod, as YAML or JSON, as the same part of what has pods of that kind.
// INVALID_ARGUMENT if the text holds several documents; `file` names it in the error.
absl::StatusOr<std::string> PatchOfTemplate(const std::string& pod_patch, const std::string& file);

// The object's text, with the patch of PatchOfTemplate merged in if it has pods. Only a patch needs
// kubectl. Errors as Kubectl::Run.
absl::StatusOr<std::string> PatchedText(const Manifest& manifest, const std::string& template_patch,
                                        Kubectl* kubectl);

// The text of MembersJob and OwnedManifests without owners, each with the patch merged in that has
// pods. Only a patch needs kubectl, but no cluster. Errors as Kubectl::Run.
absl::StatusOr<std::string> PatchedManifests(RunInCluster run, Kubectl* kubectl);

class Submission {
 public:
  // Prints a line for people.
  using Say = std::function<void(const std::string& line)>;
  // Waits that long, and returns a signal that asks for the end, or 0 (WaitForSignal).
  using Wait = std::function<int(int64_t timeout_ms)>;

  // `run` has no identity and no owner yet. `kubectl` is not owned. REQUIRES: CheckRun
  Submission(RunInCluster run, Kubectl* kubectl, Say say, Wait wait);

  // Checks that the cluster has the claims and secrets that the job names, and that all pods can
  // use the claims. NOT_FOUND, FAILED_PRECONDITION, or as Kubectl::Run.
  absl::Status CheckCluster();

  // Makes the objects, those that are missing if an earlier command was broken off. ALREADY_EXISTS:
  // there is a run of that name, and nothing has changed. FAILED_PRECONDITION: other objects of
  // these names, or pods of an earlier run, are there, or are still being deleted; or kubectl
  // fails, and what was made is removed again. Of a submission from the second on, waits until the
  // pods and objects of the one before are gone, and replaces its Job RUN. REQUIRES: called once
  absl::Status Create();

  // Waits until the coordinator serves, and says what Kubernetes waits for. FAILED_PRECONDITION: a
  // pod can never work, or the run has failed before; NOT_FOUND: the run was deleted;
  // DEADLINE_EXCEEDED: kubernetes.start_seconds are over; UNAVAILABLE: the same, but the cluster
  // has not answered at last, so that nothing is known; CANCELLED: a signal. REQUIRES: Create
  absl::Status AwaitCoordinator();

  // Waits until all pods run, or the run has ended, and says what Kubernetes waits for.
  // FAILED_PRECONDITION: a pod can never work, or the run has failed while pods were not there. OK
  // also somewhat after kubernetes.start_seconds, which end the run itself. Else as
  // AwaitCoordinator. REQUIRES: that was OK
  absl::Status AwaitPods();

  // Removes the run that this command has submitted, or what it has made of it, without waiting for
  // that. FAILED_PRECONDITION: another command has made the objects that are there, and nothing is
  // removed. Else as Kubectl::Run.
  absl::Status Remove();

  // As it was created.
  const RunInCluster& run() const { return run_; }
  // The namespace of its objects, as the cluster says; empty before Create.
  const std::string& space() const { return space_; }

 private:
  // Those of the names that the submission uses.
  absl::StatusOr<KubectlList> Objects();
  absl::Status CheckFree(const KubectlList& objects) const;
  // Waits until what belongs to an earlier submission is gone, and takes its Job RUN, which stays
  // until the end, off the list.
  absl::Status AwaitEarlier(KubectlList* objects);
  // What of an earlier submission is still there; "" if nothing is. FAILED_PRECONDITION: it goes
  // on.
  absl::StatusOr<std::string> EarlierIn(const KubectlList& objects);
  // Removes Job RUN of an earlier submission.
  absl::Status RemoveEarlierStory();
  // No pod of an earlier run may be there: it would be taken for one of this run.
  absl::Status CheckPodsAreGone();
  bool IsOurs(const KubectlObject& object) const;
  bool IsOfThisCommand(const KubectlObject& object) const;
  // Makes the object, or finds that it was made meanwhile by a command that submits the same.
  // Returns its uid.
  absl::StatusOr<std::string> Make(const Manifest& manifest);
  absl::Status CreateAll(const KubectlList& objects);
  // Says what is new. FAILED_PRECONDITION: one of the notes is final.
  absl::Status Tell(const std::vector<PodNote>& notes);
  // Waits until `is_over` of the parts of the run, for at most `limit_ms`.
  absl::Status Await(int64_t limit_ms,
                     const std::function<bool(const KubectlList& parts)>& is_over);
  int64_t StartMs() const;

  RunInCluster run_;
  Kubectl* const kubectl_;
  const Say say_;
  const Wait wait_;
  PodWatch watch_;
  std::string space_;
  std::vector<std::string> told_;  // lines of notes
  std::vector<PodNote> notes_;     // those of the last look before the run's end
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_SUBMISSION_H_
