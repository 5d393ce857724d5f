// The base of tests of runs in pods: each run has a namespace that enforces the standard
// `restricted` and has a quota, a claim on a folder of this machine, and a StatefulSet for each
// role, whose process 1 is satrap_pod. The manifests are written here, by hand.

#ifndef SATRAP_TESTS_PODS_POD_RUN_FIXTURE_H_
#define SATRAP_TESTS_PODS_POD_RUN_FIXTURE_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "tests/fault/fault_fixture.h"
#include "tests/pods/kube_cluster.h"

namespace satrap {

class PodRunFixture : public FaultFixture {
 protected:
  // One cluster for all tests of a program.
  static void SetUpTestSuite() { cluster_ = KubeCluster::Start(); }
  static void TearDownTestSuite() { cluster_.reset(); }
  // Skips the test if there is no cluster.
  void SetUp() override;
  void TearDown() override;

  // Creates everything for the job (WriteCountingJob), whose run is in RunDir(); two processes of
  // each role.
  void StartPods(const std::string& job);
  // Waits until the run's log has its end.
  bool WaitForTheEnd();
  // How many generations have made a step on all NN workers, by their logs.
  int FirstSteps() const;
  bool WaitForFirstSteps(int count);

  static std::string PodOf(Role role, int index);
  // Sends a signal to the process of a role in its pod, and waits for it if there is none now.
  void SignalRole(Role role, int index, int signal);
  // The pod is gone without a word to the run: all its processes stand still until they are killed.
  void LosePod(Role role, int index);
  // How often the kubelet has started a container of the run again.
  int ContainerRestarts() const;
  // The content of RUN/logs/ROLE_INDEX.log.
  std::string LogOf(Role role, int index) const;
  std::string Kubectl(const std::vector<std::string>& args) const;

 private:
  // The processes of the pod's containers, by the machine's numbers.
  std::vector<pid_t> ProcessesOf(Role role, int index) const;

  static std::unique_ptr<KubeCluster> cluster_;
  std::string run_;  // the namespace, and the name of the volume
};

}  // namespace satrap

#endif  // SATRAP_TESTS_PODS_POD_RUN_FIXTURE_H_
