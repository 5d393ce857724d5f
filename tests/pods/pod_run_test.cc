// Tests runs that `satrap submit` makes on a real Kubernetes, as a user with few rights. A run
// trains to its end. If a process is killed, suspended, or lost with its pod, the run continues
// within seconds, without the kubelet's back-off.

#include <poll.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/checkpoint/cut_name.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"
#include "gmock/gmock.h"
#include "tests/pods/pod_run_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::AnyOf;
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

  // The name of the oldest cut in the log whose folder still exists.
  std::string OldestCut() const {
    for (const RunLogEntry& entry : Log()) {
      const std::string& cut = entry.cut().cut();
      if (!cut.empty() && fs::exists(CheckpointsDir(RunDir()) + "/" + cut)) return cut;
    }
    return "";
  }

  // Expects that the submission, which has ended, does not begin again when every container and the
  // kubelet are restarted. REQUIRES: the controllers are suspended; otherwise they would remove the
  // pods
  void ExpectTheEndStays() {
    const size_t entries = Log().size();
    const std::string words = "the run has ended; serves its end";
    const size_t served = CountOf(LogOf(COORDINATOR, 0), words);
    for (const auto& [role, index] : kProcesses) {
      ASSERT_NO_FATAL_FAILURE(KillFirstProcess(role, index));
    }
    for (const auto& [role, index] : kProcesses) {
      Kubectl({"wait", "pod", PodOf(role, index), "--timeout=60s",
               "--for=jsonpath={.status.containerStatuses[0].restartCount}=1"});
    }
    EXPECT_TRUE(WaitUntil([&] { return CountOf(LogOf(COORDINATOR, 0), words) > served; }, 60));
    cluster().RestartKubelet();
    EXPECT_EQ(Log().size(), entries) << "another generation has begun";
  }

  // Waits for the end of Job RUN, and expects its condition and the message of its pod.
  void ExpectJobEnds(const std::string& condition, const std::string& message) {
    Kubectl({"wait", "job/counting", "--for=condition=" + condition, "--timeout=60s"});
    EXPECT_EQ(EndOfJob(), condition);
    EXPECT_THAT(Kubectl({"get", "pods", "--selector=app.kubernetes.io/component=story",
                         "--output=jsonpath={.items[*].status.containerStatuses[0].state"
                         ".terminated.message}"}),
                HasSubstr(message));
    AwaitPodsGone();
  }

  // Twins that disturb a run show it within a minute.
  static void AwaitMinuteSince(int64_t begin_ms) {
    while (MonotonicMs() - begin_ms < 60000) poll(nullptr, 0, 100);
  }

  static constexpr std::pair<Role, int> kProcesses[] = {
      {COORDINATOR, 0},      {DATA_LOADER, 0},      {DATA_LOADER, 1},
      {EMBEDDING_WORKER, 0}, {EMBEDDING_WORKER, 1}, {EMBEDDING_PS, 0},
      {EMBEDDING_PS, 1},     {NN_WORKER, 0},        {NN_WORKER, 1}};
};

// Suspends the controllers for as long as the object exists.
class SuspendedControllers {
 public:
  explicit SuspendedControllers(const KubeCluster& cluster) : cluster_(cluster) {
    cluster_.SignalControllers(SIGSTOP);
  }
  ~SuspendedControllers() { cluster_.SignalControllers(SIGCONT); }
  SuspendedControllers(const SuspendedControllers&) = delete;
  SuspendedControllers& operator=(const SuspendedControllers&) = delete;

 private:
  const KubeCluster& cluster_;
};

// Gives all nodes a label for as long as the object exists.
class LabelOfNodes {
 public:
  LabelOfNodes(const KubeCluster& cluster, const std::string& name, const std::string& value)
      : cluster_(cluster), name_(name) {
    cluster_.Kubectl({"label", "nodes", "--all", absl::StrCat(name_, "=", value)});
  }
  ~LabelOfNodes() { cluster_.Kubectl({"label", "nodes", "--all", name_ + "-"}); }
  LabelOfNodes(const LabelOfNodes&) = delete;
  LabelOfNodes& operator=(const LabelOfNodes&) = delete;

 private:
  const KubeCluster& cluster_;
  const std::string name_;
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

TEST_F(PodRunTest, AProcessThatStandsStillForGoodIsKilled) {
  constexpr int64_t kRecords = 300000;
  Submit(kRecords);
  ASSERT_TRUE(WaitForCuts(1));
  SignalRole(EMBEDDING_WORKER, 0, SIGSTOP);
  ASSERT_TRUE(WaitForGenerations(2));
  ASSERT_TRUE(WaitForCuts(Cuts() + 1));
  EXPECT_EQ(ContainerRestarts(), 0);
  ExpectFinishedInPods(kRecords);
  EXPECT_THAT(LogOf(EMBEDDING_WORKER, 0),
              HasSubstr("gave no sign of life for 12.0 s and was killed"));
}

TEST_F(PodRunTest, AProcessThatIsKilledForWantOfMemoryIsStartedAgainInItsContainer) {
  if (!fs::exists("/sys/fs/cgroup/memory")) {
    GTEST_SKIP() << "with cgroup v2 the kernel kills the whole container";
  }
  constexpr int64_t kRecords = 300000;
  Submit(kRecords);
  ASSERT_TRUE(WaitForCuts(1));
  ASSERT_NO_FATAL_FAILURE(UseUpMemory(EMBEDDING_PS, 1));
  ASSERT_TRUE(WaitForGenerations(2));
  ASSERT_TRUE(WaitForCuts(Cuts() + 1));
  EXPECT_EQ(ContainerRestarts(), 0);
  ExpectFinishedInPods(kRecords);
  EXPECT_THAT(LogOf(EMBEDDING_PS, 1),
              HasSubstr("killed by signal 9 (Killed) because the container's "
                        "memory was used up (limit: "));
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

TEST_F(PodRunTest, APodThatIsLostWithoutAWordIsReplaced) {
  constexpr int64_t kRecords = 300000;
  Submit(kRecords);
  ASSERT_TRUE(WaitForCuts(1));
  const std::string before = UidOf(EMBEDDING_PS, 1);
  LosePod(EMBEDDING_PS, 1);
  ASSERT_TRUE(WaitForGenerations(2));
  ASSERT_TRUE(WaitForCuts(Cuts() + 1));
  EXPECT_NE(UidOf(EMBEDDING_PS, 1), before);
  EXPECT_EQ(ContainerRestarts(), 0);
  ExpectFinishedInPods(kRecords);
  EXPECT_EQ(Generations(), 2);
}

TEST_F(PodRunTest, TwinsOfAnEmbeddingPsAndOfTheCoordinatorHarmNobody) {
  // Far more records than the run trains.
  Submit(10000000);
  ASSERT_TRUE(WaitForCuts(1));
  int64_t begin_ms = MonotonicMs();
  MakeTwin(EMBEDDING_PS, 1);
  Kubectl({"wait", "--for=jsonpath={.status.phase}=Running",
           absl::StrCat("pod/", TwinOf(EMBEDDING_PS, 1)), "--timeout=60s"});
  ASSERT_TRUE(WaitUntil(
      [&] {
        return Kubectl({"logs", TwinOf(EMBEDDING_PS, 1)}).find("already runs in another pod") !=
               std::string::npos;
      },
      60));
  ASSERT_TRUE(WaitForCuts(Cuts() + 5));
  AwaitMinuteSince(begin_ms);
  EXPECT_EQ(Generations(), 1) << "a twin waits";
  MakeTwin(COORDINATOR, 0);
  begin_ms = MonotonicMs();
  Kubectl({"wait", "--for=jsonpath={.status.phase}=Running",
           absl::StrCat("pod/", TwinOf(COORDINATOR, 0)), "--timeout=60s"});
  AwaitMinuteSince(begin_ms);
  EXPECT_LE(Generations(), 3) << "at most two more";
  ASSERT_TRUE(WaitForCuts(Cuts() + 2)) << "the run goes on";
  for (const auto& [role, index] : {std::pair(COORDINATOR, 0), std::pair(EMBEDDING_PS, 1)}) {
    Kubectl({"delete", "pod", TwinOf(role, index), "--wait=false"});
  }
  StopRun();
  EXPECT_EQ(AwaitSubmit().exit_code, 0);
  EXPECT_EQ(Log().back().end().state(), STOPPED);
}

TEST_F(PodRunTest, PodsThatAreEvictedOneByOneDuringTheStartCostNoGeneration) {
  constexpr int64_t kRecords = 100000;
  // The run stays in the state STARTING until the node has the label that its NN workers require.
  const std::string section = absl::StrReplaceAll(
      SectionOfPods(),
      {{"nn_worker {", "nn_worker { node_selector { name: \"trains\" value: \"yes\" } "}});
  SubmitJob(WriteCountingJob(kRecords, section), {"--set", "embedding_ps.replicas=4"});
  const auto registered = [&](int index) {
    return CountOf(LogOf(EMBEDDING_PS, index), " registered ");
  };
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(WaitUntil([&] { return registered(i) > 0; }, 60)) << i;
  }
  for (int i = 0; i < 4; ++i) {
    const size_t before = registered(i);
    EvictPod(EMBEDDING_PS, i);
    ASSERT_TRUE(WaitUntil([&] { return registered(i) > before; }, 60)) << i;
  }
  const LabelOfNodes label(cluster(), "trains", "yes");
  ExpectFinishedInPods(kRecords);
  EXPECT_EQ(Generations(), 1);
}

TEST_F(PodRunTest, TwoRunsTrainAtOnceAndOneOfTwoSubmissionsOfANameIsRefused) {
  constexpr int64_t kRecords = 100000;
  Submit(kRecords);
  const std::string folder = fs::read_symlink(RunDir()).filename();
  // The other run is small, because the node has few resources.
  std::vector<std::string> other = {"submit",  Path("job.textproto"), "--name=other", "--detach",
                                    "--image", cluster().image()};
  for (const char* const role : {"data_loader", "embedding_worker", "embedding_ps", "nn_worker"}) {
    other.insert(other.end(), {"--set", absl::StrCat(role, ".replicas=1")});
  }
  const Command first = StartSatrap(other);
  const Command second = StartSatrap(other);
  const CommandEnd ends[] = {WaitFor(first), WaitFor(second)};
  const bool first_is_refused = ends[0].exit_code != 0;
  EXPECT_EQ(ends[first_is_refused ? 1 : 0].exit_code, 0) << ends[0].err << ends[1].err;
  const CommandEnd& refused = ends[first_is_refused ? 0 : 1];
  EXPECT_EQ(refused.exit_code, 1);
  // It depends on when the winner makes its last object, Job RUN.
  EXPECT_THAT(refused.err, AnyOf(HasSubstr("there is a run other in"),
                                 HasSubstr("of another submission of the run other is there"),
                                 HasSubstr("another command has just submitted the run other")));
  ExpectFinishedInPods(kRecords);
  EXPECT_EQ(Generations(), 1);

  Kubectl({"wait", "job/other", "--for=condition=Complete", "--timeout=120s"});
  for (const auto& entry : fs::directory_iterator(Path("volume"))) {
    if (entry.path().filename() != folder) LookInto(entry.path().filename());
  }
  ASSERT_NE(fs::read_symlink(RunDir()).filename(), folder);
  ExpectEachRecordTrained(kRecords);
  EXPECT_EQ(Generations(), 1);
}

TEST_F(PodRunTest, ARunThatTrainsIsScaledUpAndDownByCommandsThatMayBeInterrupted) {
  Submit(1500000);
  ASSERT_TRUE(WaitForCuts(1));
  const auto scale = [&](const std::string& set) {
    return Satrap({"scale", "counting", set, "--namespace", space_});
  };
  CommandEnd end = scale("embedding_ps.replicas=4");
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("4 embedding PSs"));
  EXPECT_EQ(Generations(), 3) << "one is announced and one begins: the added pods have waited";
  EXPECT_EQ(ReplicasOfSet(EMBEDDING_PS), "4");
  ASSERT_TRUE(WaitForCuts(Cuts() + 1));
  end = scale("embedding_ps.replicas=4");
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("has these values already"));
  // Kill the command while its pods start, then repeat it.
  Command broken = StartSatrap({"scale", "counting", "nn_worker.replicas=3",
                                "embedding_ps.replicas=1", "--namespace", space_});
  ASSERT_TRUE(WaitUntil([&] { return ReplicasOfSet(NN_WORKER) == "3"; }, 60));
  SendSignal(broken.pid, SIGKILL);
  WaitFor(broken, 60);
  end = Satrap({"scale", "counting", "nn_worker.replicas=3", "embedding_ps.replicas=1",
                "--namespace", space_});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(ReplicasOfSet(NN_WORKER), "3");
  EXPECT_EQ(ReplicasOfSet(EMBEDDING_PS), "1");
  const std::string status = Satrap({"status", "counting", "--namespace", space_}).out;
  EXPECT_THAT(status, AllOf(HasSubstr("nn_worker 2"), HasSubstr("of 256Mi")));
  ASSERT_TRUE(WaitForCuts(Cuts() + 1));
  StopRun();
  EXPECT_EQ(AwaitSubmit().exit_code, 0);
  EXPECT_THAT(Satrap({"checkpoint", "list", "counting", "--namespace", space_}).out,
              HasSubstr("latest"));
  ASSERT_NO_FATAL_FAILURE(ResumeInPods());
  ExpectFinishedInPods(1500000);
  EXPECT_EQ(Log().back().end().state(), FINISHED);
  const GenerationEntry* newest = nullptr;
  const std::vector<RunLogEntry> log = Log();
  for (const RunLogEntry& entry : log) {
    if (entry.has_generation()) newest = &entry.generation();
  }
  ASSERT_NE(newest, nullptr);
  EXPECT_EQ(newest->job().embedding_ps().replicas(), 1) << "a resume keeps the size";
  EXPECT_EQ(newest->job().nn_worker().replicas(), 3);
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

TEST_F(PodRunTest, AStoppedRunStaysStoppedWhenAllContainersAndTheKubeletAreRestarted) {
  Submit(10000000);
  ASSERT_TRUE(WaitForCuts(1));
  {
    const SuspendedControllers suspended(cluster());
    StopRun();
    ASSERT_NO_FATAL_FAILURE(ExpectTheEndStays());
  }
  EXPECT_EQ(Log().back().end().state(), STOPPED);
  EXPECT_EQ(AwaitSubmit().exit_code, 0);
  ExpectJobEnds("Complete", "STOPPED");
}

TEST_F(PodRunTest, AFailedRunStaysFailedWhenAllContainersAndTheKubeletAreRestarted) {
  Submit(10000000, {"--set", "max_restarts=0"});
  ASSERT_TRUE(WaitForCuts(1));
  {
    const SuspendedControllers suspended(cluster());
    SignalRole(EMBEDDING_PS, 1, SIGKILL);
    ASSERT_TRUE(WaitUntil([&] { return Log().back().has_end(); }, 60));
    ASSERT_NO_FATAL_FAILURE(ExpectTheEndStays());
  }
  EXPECT_EQ(Log().back().end().state(), FAILED);
  EXPECT_EQ(AwaitSubmit().exit_code, 1);
  ExpectJobEnds("Failed", "embedding_ps 1");
}

TEST_F(PodRunTest, ARunThatWasStoppedIsResumedAsItsNextSubmission) {
  constexpr int64_t kRecords = 500000;
  Submit(kRecords);
  ASSERT_TRUE(WaitForCuts(1));
  StopRun();
  // Resume at once, while the pods of the first submission are still ending.
  ASSERT_NO_FATAL_FAILURE(
      ResumeInPods({"--set", "embedding_ps.replicas=3", "--set", "checkpoint.keep=100"}));
  ASSERT_TRUE(WaitForGenerations(2));
  const int cuts = Cuts();
  ASSERT_TRUE(WaitForCuts(cuts + 2));
  EXPECT_EQ(ContainerRestarts(), 0);
  StopRun();
  const CommandEnd resumed = AwaitSubmit();
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(Satrap({"list"}).out, AllOf(HasSubstr("counting"), HasSubstr("was stopped")));
  // The run forgets what it has trained after that cut, and trains it again.
  const std::string older = OldestCut();
  ASSERT_NE(older, fs::path(NewestCut()).filename());
  ASSERT_NO_FATAL_FAILURE(ResumeInPods({"--from", older}));
  ExpectFinishedInPods(kRecords);
  std::vector<GenerationEntry> generations;
  for (const RunLogEntry& entry : Log()) {
    if (entry.has_generation()) generations.push_back(entry.generation());
  }
  ASSERT_EQ(generations.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(generations[i].submission(), i + 1);
  EXPECT_EQ(generations[0].job().embedding_ps().replicas(), 2);
  EXPECT_EQ(generations[1].job().embedding_ps().replicas(), 3);
  EXPECT_EQ(generations[2].job().embedding_ps().replicas(), 3) << "the job of the one before";
  EXPECT_EQ(generations[2].cut(), older);
  EXPECT_THAT(Satrap({"resume", "counting", "--namespace", space_}).err,
              HasSubstr("the run counting has finished: there is nothing to resume"));
}

TEST_F(PodRunTest, AResumeThatCannotBeginSaysWhyAndLeavesTheRunToBeResumed) {
  constexpr int64_t kRecords = 100000;
  Submit(kRecords);
  ASSERT_TRUE(WaitForCuts(1));
  StopRun();
  // Try twice, because the second attempt has the submission number of the first one, whose refusal
  // is in the run's folder.
  for (const std::string cut : {"cut-x", "cut-y"}) {
    const CommandEnd refused = Satrap({"resume", "counting", "--namespace", space_, "--from", cut});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr(absl::StrCat("the coordinator does not begin: cut '", cut)));
  }
  EXPECT_THAT(Satrap({"list"}).out, HasSubstr("has no pods"));
  ASSERT_NO_FATAL_FAILURE(ResumeInPods());
  ExpectFinishedInPods(kRecords);
  EXPECT_EQ(Generations(), 2);
}

}  // namespace
}  // namespace satrap
