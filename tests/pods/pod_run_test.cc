// Tests runs that `satrap submit` makes on a real Kubernetes, as a user with few rights. A run
// trains to its end or is stopped. If a process is killed or a pod deleted, the run continues
// within seconds, without the kubelet's back-off. pod_life_test.cc has the tests that take longer.

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "common/role/role_flags.h"
#include "gmock/gmock.h"
#include "tests/pods/pod_run_fixture.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PodRunTest : public PodRunFixture {
 protected:
  // The field left_for of the newest cut before a generation.
  CutEntry::LeftFor LeftBefore(int generation) const {
    CutEntry::LeftFor left = CutEntry::NOT_SAID;
    for (const RunLogEntry& entry : Log()) {
      if (entry.has_cut()) left = entry.cut().left_for();
      if (entry.has_generation() &&
          entry.generation().generation() == static_cast<uint64_t>(generation))
        break;
    }
    return left;
  }
};

TEST_F(PodRunTest, TheApiServerTakesTheObjectsOfSubmit) {
  const std::vector<std::string> check = {"create", "--dry-run=server", "--validate=strict",
                                          "--filename"};
  const auto expect_taken = [&](const std::string& path, const std::string& space) {
    std::vector<std::string> args = check;
    args.insert(args.end(), {path, "--namespace", space});
    EXPECT_THAT(Kubectl(args), AllOf(HasSubstr("statefulset"), HasSubstr("job.batch"))) << path;
  };
  expect_taken("deploy/submit/golden/demo.yaml", space_);
  Kubectl({"create", "namespace", "ml"});
  expect_taken("deploy/submit/golden/cards.yaml", "ml");
  Kubectl({"delete", "namespace", "ml", "--wait=false"});
  const CommandEnd dry_run = Satrap({"submit", WriteJobInPods(1000), "--image=any", "--dry_run"});
  EXPECT_EQ(dry_run.exit_code, 0) << dry_run.err;
  expect_taken(WriteFile("objects.yaml", dry_run.out), space_);
  EXPECT_EQ(Kubectl({"get", "statefulsets", "--output=name"}), "") << "nothing is made";
}

TEST_F(PodRunTest, ARunTrainsToItsEnd) {
  constexpr int64_t kRecords = 100000;
  Submit(kRecords);
  ASSERT_TRUE(WaitForCuts(1));
  EXPECT_EQ(ContainerRestarts(), 0);
  ExpectFinishedInPods(kRecords);
  EXPECT_EQ(Generations(), 1);
  EXPECT_THAT(ReadFile(RunDir() + "/report.json"), HasSubstr("\"model_digest\""));
  EXPECT_THAT(Satrap({"list"}).out, AllOf(HasSubstr("counting"), HasSubstr("has finished")));
}

TEST_F(PodRunTest, AProcessThatIsKilledIsStartedAgainInItsContainer) {
  constexpr int64_t kRecords = 1000000;
  Submit(kRecords);
  int generations = 1;
  for (const Role role : {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
    ASSERT_TRUE(WaitForCuts(Cuts() + 1));
    SignalRole(role, role == COORDINATOR ? 0 : 1, SIGKILL);
    ASSERT_TRUE(WaitForGenerations(++generations)) << RoleName(role);
  }
  ASSERT_TRUE(WaitForCuts(Cuts() + 1));
  EXPECT_EQ(ContainerRestarts(), 0);
  // The container's log is the log of its processes.
  EXPECT_THAT(Satrap({"logs", "counting", "embedding_ps", "1", "--namespace", space_}).out,
              HasSubstr("was killed by signal 9 (Killed)"));
  ExpectFinishedInPods(kRecords);
  EXPECT_EQ(Generations(), generations) << "each death costs one";
  EXPECT_THAT(LogOf(EMBEDDING_PS, 1), HasSubstr("was killed by signal 9 (Killed)"));
}

TEST_F(PodRunTest, APodThatIsDeletedLeavesWithALastCutAndIsReplaced) {
  constexpr int64_t kRecords = 500000;
  Submit(kRecords);
  int generations = 1;
  for (const Role role : {EMBEDDING_PS, COORDINATOR}) {
    ASSERT_TRUE(WaitForCuts(Cuts() + 1));
    const std::string before = UidOf(role, 0);
    DeletePod(role, 0);
    ASSERT_TRUE(WaitForGenerations(++generations)) << RoleName(role);
    EXPECT_EQ(LeftBefore(generations), CutEntry::MOVE) << RoleName(role);
    ASSERT_TRUE(WaitForCuts(Cuts() + 1));
    EXPECT_NE(UidOf(role, 0), before);
  }
  EXPECT_EQ(ContainerRestarts(), 0);
  ExpectFinishedInPods(kRecords);
  EXPECT_EQ(Generations(), generations);
}

TEST_F(PodRunTest, ARunThatIsStoppedEndsAndGivesItsPodsBack) {
  // Far more records than the run trains before it is stopped.
  Submit(10000000);
  ASSERT_TRUE(WaitForCuts(1));
  EXPECT_THAT(Satrap({"status", "counting", "--namespace", space_}).out,
              AllOf(HasSubstr("RUNNING"), HasSubstr(PodOf(EMBEDDING_PS, 1))));
  const CommandEnd cut = Satrap({"checkpoint", "counting", "--namespace", space_});
  EXPECT_EQ(cut.exit_code, 0) << cut.err;
  EXPECT_THAT(cut.out, HasSubstr("written in"));
  EXPECT_THAT(Satrap({"checkpoint", "list", "counting", "--namespace", space_}).out,
              HasSubstr("latest"));
  StopRun();
  const CommandEnd submit = AwaitSubmit();
  EXPECT_EQ(submit.exit_code, 0) << submit.err << submit.out;
  EXPECT_EQ(Generations(), 1);
  EXPECT_EQ(Log().back().end().state(), STOPPED);
  EXPECT_EQ(EndOfJob(), "Complete");
  AwaitPodsGone();
  // The name is in use until the run is removed.
  EXPECT_THAT(Satrap({"submit", Path("job.textproto"), "--image", "any"}).err,
              HasSubstr("there is a run counting in"));
  EXPECT_EQ(Satrap({"delete", "counting", "--namespace", space_}).exit_code, 0);
  Kubectl({"wait", "--for=delete", "job/counting", "configmap/counting-job", "--timeout=60s"});
  EXPECT_GT(Cuts(), 0) << "the run's folder stays";
}

}  // namespace
}  // namespace satrap
