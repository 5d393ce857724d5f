// Test support: a kubectl with a small cluster behind it, which keeps the objects that are made. No
// controller works there: a test says which pods there are, and how objects do.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_COMMAND_FAKE_CLUSTER_H_
#define SATRAP_DEPLOY_SUBMIT_COMMAND_FAKE_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/submit/command/submit_run.h"
#include "deploy/submit/kubectl/fake_kubectl.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/manifests.h"

namespace satrap {

class FakeClusterTest : public FakeKubectlTest {
 protected:
  // The cluster has the claim `runs`, which is bound.
  void SetUp() override;

  // Runs SubmitRun of the run demo. Its lines are in said_ and shown_, and each of its waits calls
  // on_wait_ and returns signal_ at once.
  absl::StatusOr<int> Submit(const RunInCluster& run, bool detach = false);

  // The status of an object that is made: `json` is an object.
  void SetStatus(const std::string& kind, const std::string& name, const std::string& json);
  // The pods of the run, as long as it has a Job RUN-members. `pods` are from Pod.
  void SetPods(const std::vector<std::string>& pods);
  static std::string Pod(const std::string& part, const std::string& name,
                         const std::string& status);
  // An event of the object that is made.
  void SetEvent(const std::string& kind, const std::string& name, const std::string& reason,
                const std::string& message);
  // The cluster refuses to make the object, and kubectl says `why`.
  void Refuse(const std::string& kind, const std::string& name, const std::string& why);
  // The names of the objects that are there: "Job demo", ...
  std::vector<std::string> Objects() const;
  // Job RUN and its pod say that the run has failed, and why.
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

#endif  // SATRAP_DEPLOY_SUBMIT_COMMAND_FAKE_CLUSTER_H_
