// Runs in pods on a real Kubernetes: a run trains to its end, and goes on in seconds when a process
// is killed, stands still or is lost with its pod, without the kubelet's back-off.

#include <csignal>

#include "gmock/gmock.h"
#include "tests/pods/pod_run_fixture.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

class PodRunTest : public PodRunFixture {};

TEST_F(PodRunTest, ARunTrainsToItsEnd) {
  constexpr int64_t kRecords = 100000;
  StartPods(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForTheEnd());
  ExpectEachRecordTrained(kRecords);
  EXPECT_EQ(Generations(), 1);
  EXPECT_EQ(ContainerRestarts(), 0);
}

TEST_F(PodRunTest, AProcessThatIsKilledIsStartedAgainInItsContainer) {
  constexpr int64_t kRecords = 1000000;
  StartPods(WriteCountingJob(kRecords));
  int generations = 1;
  for (const Role role : {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
    ASSERT_TRUE(WaitForCuts(Cuts() + 1));
    SignalRole(role, role == COORDINATOR ? 0 : 1, SIGKILL);
    ASSERT_TRUE(WaitForGenerations(++generations)) << RoleName(role);
  }
  ASSERT_TRUE(WaitForTheEnd());
  ExpectEachRecordTrained(kRecords);
  EXPECT_EQ(Generations(), generations) << "each death costs one";
  EXPECT_EQ(ContainerRestarts(), 0);
  EXPECT_THAT(LogOf(EMBEDDING_PS, 1), HasSubstr("was killed by signal 9 (Killed)"));
  // The container's log is that of its processes.
  EXPECT_THAT(Kubectl({"logs", PodOf(EMBEDDING_PS, 1)}), HasSubstr("was killed by signal 9"));
}

TEST_F(PodRunTest, AProcessThatStandsStillForGoodIsKilled) {
  constexpr int64_t kRecords = 300000;
  StartPods(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1));
  SignalRole(EMBEDDING_WORKER, 0, SIGSTOP);
  ASSERT_TRUE(WaitForTheEnd());
  ExpectEachRecordTrained(kRecords);
  EXPECT_EQ(ContainerRestarts(), 0);
  EXPECT_THAT(LogOf(EMBEDDING_WORKER, 0), HasSubstr("showed no life for 12.0 s and was killed"));
}

// Today a pod that is deleted asks the run to stop, so this one cannot say a word.
TEST_F(PodRunTest, APodThatIsLostIsReplacedAndTheRunGoesOn) {
  constexpr int64_t kRecords = 300000;
  StartPods(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1));
  const std::string name = PodOf(EMBEDDING_PS, 1);
  const std::string before = Kubectl({"get", "pod", name, "-o", "jsonpath={.metadata.uid}"});
  LosePod(EMBEDDING_PS, 1);
  ASSERT_TRUE(WaitForTheEnd());
  ExpectEachRecordTrained(kRecords);
  EXPECT_NE(Kubectl({"get", "pod", name, "-o", "jsonpath={.metadata.uid}"}), before);
  EXPECT_EQ(Generations(), 2);
  EXPECT_EQ(ContainerRestarts(), 0);
}

}  // namespace
}  // namespace satrap
