// A fake kubectl with a small cluster, which keeps the objects that are made. The cluster has no
// controllers: the test sets its pods and the status of its objects.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_COMMAND_TESTING_FAKE_CLUSTER_H_
#define SATRAP_DEPLOY_SUBMIT_COMMAND_TESTING_FAKE_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/submit/command/submit_run.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/kubectl/testing/fake_kubectl.h"
#include "deploy/submit/manifests.h"

namespace satrap {

class FakeClusterTest : public FakeKubectlTest {
 protected:
  // The cluster has the claim `runs`, which is bound.
  void SetUp() override;

  // Calls SubmitRun for the run demo. Its lines go to said_ and shown_. Each of its waits calls
  // on_wait_ and returns signal_ at once.
  absl::StatusOr<int> Submit(const RunInCluster& run, bool detach = false);

  // Sets the status that an object has once it is made. `json` is an object.
  void SetStatus(const std::string& kind, const std::string& name, const std::string& json);
  // Sets the pods of the run, which exist while its Job RUN-members does. `pods` are made by Pod.
  void SetPods(const std::vector<std::string>& pods);
  static std::string Pod(const std::string& part, const std::string& name,
                         const std::string& status);
  // Sets the only event of the cluster, which is about that object.
  void SetEvent(const std::string& kind, const std::string& name, const std::string& reason,
                const std::string& message);
  // Lets the cluster refuse to make the object, for the reason `why`, which kubectl prints.
  void Refuse(const std::string& kind, const std::string& name, const std::string& why);
  // Removes the object, if it exists, as `kubectl delete` does. The objects that it owns stay.
  void Lose(const std::string& object);
  // The names of the objects that exist: "Job demo", ...
  std::vector<std::string> Objects() const;
  // Lets Job RUN show that the run has failed, and its pod why.
  void FailRun(const std::string& why);

  std::unique_ptr<Kubectl> kubectl_;
  std::vector<std::string> said_;
  std::string shown_;
  std::function<void()> on_wait_;
  int signal_ = 0;

 private:
  std::vector<std::string> pods_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_COMMAND_TESTING_FAKE_CLUSTER_H_
