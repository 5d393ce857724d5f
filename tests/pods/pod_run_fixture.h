// The base of tests of runs in pods, which `satrap submit` makes. Each run has a namespace of its
// own, which enforces the standard `restricted` and has a quota, a claim on a folder of this
// machine, and a user who has the rights of the role `edit` there and no others.

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

  // The section `kubernetes` of a job in pods. `memory`: the limit of each container.
  static std::string SectionOfPods(const std::string& memory = "256Mi");
  // Like WriteCountingJob, with the fields that pods need in addition. Returns the job's path.
  std::string WriteJobInPods(int64_t records);
  // Starts `satrap submit` of such a job, with `args`, and waits until its objects are made. From
  // then on RunDir() leads to the run's folder.
  void Submit(int64_t records, const std::vector<std::string>& args = {});
  // Does the same with the job at `path`, which has a section `kubernetes`. The run's name is that
  // of the counting job.
  void SubmitJob(const std::string& path, const std::vector<std::string>& args = {});
  // Stops the run by `satrap stop`, waits until that command ends, and expects that it succeeds.
  void StopRun();
  // Starts `satrap resume` of the run, with `args`, and waits until its objects are made.
  void ResumeInPods(const std::vector<std::string>& args = {});
  // Waits for the end of the command that submitted or resumed the run last. Expects that the run
  // has finished and has trained each record once. Expects that the cluster keeps only two things
  // of the run: the Job that shows its end, and the ConfigMaps with its jobs.
  void ExpectFinishedInPods(int64_t records);
  // Waits for the end of the command that submitted or resumed the run last.
  CommandEnd AwaitSubmit();
  // How Job RUN has ended: "Complete" or "Failed"; empty if it has not ended.
  std::string EndOfJob() const;
  // Waits until only Job RUN and the ConfigMaps, with which a resume begins, are left of the run's
  // objects.
  void AwaitPodsGone() const;

  // The number of generations in which all NN workers have made a step, by their logs.
  int FirstSteps() const;
  bool WaitForFirstSteps(int count);

  static std::string PodOf(Role role, int index);
  std::string UidOf(Role role, int index) const;
  // Sends a signal to the process of a role in its pod, and waits for it if there is none now.
  void SignalRole(Role role, int index, int signal);
  // Kills process 1 of a role's container, and with it all processes there.
  void KillFirstProcess(Role role, int index);
  // Makes the kernel kill the process of a role for lack of memory: lowers the limit of its
  // container to what it uses, until its log says that memory was used up. REQUIRES: cgroup v1,
  // where only that process dies
  void UseUpMemory(Role role, int index);
  // Deletes the pod as a drain does, with the pod's own grace period.
  void DeletePod(Role role, int index);
  // Deletes the pod without its grace period, and waits until none of its processes is left. Until
  // then its successor has the same place.
  void ForceDeletePod(Role role, int index);
  // Asks the API server to evict the pod, as a drain does, and returns at once.
  void EvictPod(Role role, int index);
  // Makes a bare pod with the containers, flags and labels of another one.
  void MakeTwin(Role role, int index);
  static std::string TwinOf(Role role, int index);
  // How many pods the StatefulSet of the role is set to have.
  std::string ReplicasOfSet(Role role) const;
  // Makes the pod fall silent, as if its node were lost: suspends all its processes until they are
  // killed.
  void LosePod(Role role, int index);
  // How often the kubelet has restarted a container of the run.
  int ContainerRestarts() const;
  // The content of RUN/logs/ROLE_INDEX.log.
  std::string LogOf(Role role, int index) const;
  // kubectl in the run's namespace, as the cluster's administrator.
  std::string Kubectl(const std::vector<std::string>& args) const;
  // The cluster. REQUIRES: SetUp has not skipped the test
  static const KubeCluster& cluster() { return *cluster_; }
  // Makes RunDir() lead to a folder of the volume.
  void LookInto(const std::string& folder);

  std::string space_;  // the run's namespace, and the name of its volume

 private:
  // Waits until the command that submits or resumes the run has named its folder. Returns the
  // folder's name, or "".
  std::string AwaitFolder() const;
  // The processes of the containers of the pod with this uid, as PIDs outside the containers.
  static std::vector<pid_t> ProcessesOf(const std::string& uid);
  // The process of a program in the pod of a role. If there is none now, waits for it; 0 if none
  // comes in time.
  pid_t ProcessOf(Role role, int index, const std::string& program) const;

  static std::unique_ptr<KubeCluster> cluster_;
  Command submit_;
};

}  // namespace satrap

#endif  // SATRAP_TESTS_PODS_POD_RUN_FIXTURE_H_
