// Runs that are stopped, resumed, made larger or smaller, or left standing: docs/consistency.md,
// "Generations" and "What each failure does".

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kRecords = 100000;
constexpr double kSecondsToEnd = 120;

class StopTest : public FaultFixture {};

TEST_F(StopTest, AStoppedRunTakesALastCutAndResumesFromIt) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  EXPECT_EQ(Satrap({"stop", RunDir()}).exit_code, 0);
  const CommandEnd stopped = WaitFor(run, 30);
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("satrap resume"));
  EXPECT_TRUE(NobodyIsLeft());
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, CtrlCTakesALastCutToo) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const int cuts = Cuts();
  kill(run.pid, SIGINT);
  const CommandEnd stopped = WaitFor(run, 30);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_GT(Cuts(), cuts);
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, ASecondCtrlCEndsTheRunAtOnce) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  // A rank that stands still keeps the last cut from being taken.
  Signal("nn_worker", 1, SIGSTOP);
  kill(run.pid, SIGINT);
  EXPECT_TRUE(WaitUntil(
      [&] { return ReadFile(run.err_path).find("takes a last cut") != std::string::npos; }, 5));
  // A program that repeats a signal within a second means the same one.
  WaitUntil([] { return false; }, 1.1);
  kill(run.pid, SIGINT);
  const CommandEnd stopped = WaitFor(run, 5);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_TRUE(NobodyIsLeft());
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, AStoppedChaosLeavesNoUndisturbedRunBehind) {
  const std::string job = WriteCountingJob(kRecords);
  const std::string undisturbed = RunDir() + "-undisturbed-1";
  for (const int signal : {SIGTERM, SIGKILL}) {
    const Command chaos = StartSatrap(
        {"chaos", job, "--run_dir", RunDir(), "--undisturbed=1", "--set", "epochs=100"});
    ASSERT_TRUE(WaitUntilTraining(undisturbed)) << ReadFile(chaos.err_path);
    kill(chaos.pid, signal);
    const CommandEnd end = WaitFor(chaos, 40);
    EXPECT_TRUE(WaitUntilOver(undisturbed, 20));
    EXPECT_TRUE(WaitUntilGone("--run_dir=" + undisturbed, 5));
    EXPECT_FALSE(fs::exists(RunDir())) << "the disturbed run did not begin";
    if (signal == SIGTERM) {
      EXPECT_EQ(end.exit_code, 130) << end.err;
      EXPECT_THAT(end.err, AllOf(HasSubstr("Terminated: the run takes a last cut and stops"),
                                 HasSubstr("undisturbed-1 was stopped by Terminated")));
    }
    fs::remove_all(undisturbed);
  }
}

TEST_F(StopTest, ChaosChecksWhatItWritesBeforeItTrains) {
  const std::string job = WriteCountingJob(1000);
  const std::string undisturbed = RunDir() + "-undisturbed-";
  const auto refusal_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"chaos", job, "--run_dir", RunDir(), "--undisturbed=2"};
    args.insert(args.end(), more.begin(), more.end());
    const CommandEnd end = Satrap(args);
    EXPECT_EQ(end.exit_code, 1) << end.err;
    EXPECT_FALSE(fs::exists(undisturbed + "1")) << "nothing ran";
    return end.err;
  };
  EXPECT_THAT(refusal_of({"--report", Path("no/report.json")}),
              HasSubstr("no/report.json: No such"));
  fs::create_directories(undisturbed + "2");
  WriteFile("run-undisturbed-2/job.textproto", "name: 'other'");
  EXPECT_THAT(refusal_of({}), HasSubstr("run-undisturbed-2 holds a run already"));
  fs::remove_all(undisturbed + "2");
  fs::create_directories(RunDir());
  WriteFile("run/job.textproto", "name: 'other'");
  EXPECT_THAT(refusal_of({}), HasSubstr("run holds a run already"));
}

TEST_F(StopTest, ARunWhoseLauncherWasKilledResumes) {
  LeaveAKilledRun(WriteCountingJob(kRecords));
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, ResumeRefusesAChangeOfTheOrderOfSamples) {
  LeaveAKilledRun(WriteCountingJob(kRecords));
  const CommandEnd refused = Resume({"--set", "seed=2", "--set", "global_batch_size=512"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("seed"), HasSubstr("global_batch_size")));
  ExpectFinished(Resume({"--set", "embedding_ps.replicas=3"}), kRecords);
}

TEST_F(StopTest, AFinishedRunIsNotResumed) {
  ExpectFinished(WaitFor(StartRun(WriteCountingJob(20000)), kSecondsToEnd), 20000);
  const CommandEnd again = Resume();
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("finished"));
}

TEST_F(StopTest, AProcessThatStandsStillForFiveSecondsIsWaitedFor) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const pid_t pid = RoleProcess(RunDir(), "embedding_ps", 1);
  kill(pid, SIGSTOP);
  WaitUntil([] { return false; }, 5);
  kill(pid, SIGCONT);
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(Generations(), 1);
}

TEST_F(StopTest, AProcessThatStandsStillForLongIsLost) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  Signal("embedding_ps", 1, SIGSTOP);
  ASSERT_TRUE(WaitForGenerations(2, 30));
  const CommandEnd end = WaitFor(run, kSecondsToEnd);
  ExpectFinished(end, kRecords);
  EXPECT_THAT(end.err, HasSubstr("embedding_ps 1"));
}

}  // namespace
}  // namespace satrap
