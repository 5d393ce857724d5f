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

constexpr int64_t kRecords = 200000;
constexpr double kSecondsToEnd = 120;

class StopTest : public FaultFixture {
 protected:
  CommandEnd Resume(const std::vector<std::string>& args = {}) {
    std::vector<std::string> all = {"resume", RunDir()};
    all.insert(all.end(), args.begin(), args.end());
    return WaitFor(StartSatrap(all), kSecondsToEnd);
  }
  // A run that has committed some cuts and was then killed with its launcher.
  void LeaveAKilledRun() {
    const Command run = StartRun(WriteCountingJob(kRecords));
    ASSERT_TRUE(WaitForCuts(2)) << ReadFile(run.err_path);
    kill(run.pid, SIGKILL);
    EXPECT_EQ(WaitFor(run, 10).exit_code, -1);
    EXPECT_TRUE(NobodyIsLeft());
  }
  std::string ModelDigest() const {
    const std::string report = ReadFile(RunDir() + "/report.json");
    const size_t at = report.find("\"model_digest\":\"");
    return at == std::string::npos ? "" : report.substr(at + 16, 16);
  }
};

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
  EXPECT_TRUE(WaitUntil([&] { return !ReadFile(run.err_path).empty(); }, 5));
  kill(run.pid, SIGINT);
  const CommandEnd stopped = WaitFor(run, 5);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_TRUE(NobodyIsLeft());
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, ARunWhoseLauncherWasKilledResumes) {
  LeaveAKilledRun();
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, ResumeBesideALivingLauncherIsRefused) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const CommandEnd second = Resume();
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr(absl::StrCat(run.pid)));
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(Generations(), 1);
}

TEST_F(StopTest, ResumeRefusesAChangeOfTheOrderOfSamples) {
  LeaveAKilledRun();
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

TEST_F(StopTest, AnOlderCutCanBeResumedFrom) {
  const Command run = StartRun(WriteCountingJob(kRecords), {"--set", "checkpoint.keep=100"});
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const std::string older = fs::path(NewestCut()).filename();
  ASSERT_TRUE(WaitForCuts(3)) << ReadFile(run.err_path);
  kill(run.pid, SIGKILL);
  WaitFor(run, 10);
  EXPECT_TRUE(NobodyIsLeft());
  ExpectFinished(Resume({"--from", older}), kRecords);
}

TEST_F(StopTest, ADamagedCutIsRefusedWithItsFile) {
  LeaveAKilledRun();
  std::string damaged;
  for (const auto& entry : fs::directory_iterator(NewestCut())) {
    if (entry.path().extension() == ".rows") damaged = entry.path();
  }
  ASSERT_FALSE(damaged.empty());
  {
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file.put('\x55');
  }
  const CommandEnd verified = Satrap({"checkpoint", "verify", NewestCut()});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out + verified.err, HasSubstr(fs::path(damaged).filename().string()));
  const CommandEnd refused = Resume();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(fs::path(damaged).filename().string()),
                                 HasSubstr("--from CUT"), Not(HasSubstr("` goes on from"))));
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(StopTest, AMissingFileOfACutIsNamed) {
  LeaveAKilledRun();
  fs::remove(NewestCut() + "/dense.bin");
  const CommandEnd refused = Resume();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("dense.bin"), HasSubstr("--from CUT")));
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

class ScaleTest : public StopTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ScaleTest, ARunGrowsAndShrinksUnderTraining) {
  const std::vector<std::string> mode = {"--set", GetParam()};
  const Command run = StartRun(WriteCountingJob(kRecords), mode);
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const CommandEnd larger =
      Satrap({"scale", RunDir(), "embedding_ps.replicas=4", "data_loader.replicas=1"});
  EXPECT_EQ(larger.exit_code, 0) << larger.err;
  const CommandEnd smaller = Satrap({"scale", RunDir(), "embedding_ps.replicas=1"});
  EXPECT_EQ(smaller.exit_code, 0) << smaller.err;
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_GE(Generations(), 3);
}

INSTANTIATE_TEST_SUITE_P(EachMode, ScaleTest, ::testing::Values("mode=HYBRID", "mode=SYNC"),
                         [](const auto& info) { return std::string(info.param).substr(5); });

TEST_F(StopTest, ASyncRunThatIsKilledAndScaledGetsTheModelOfAnUndisturbedOne) {
  const std::vector<std::string> sync = {"--set", "mode=SYNC", "--set", "reproducible=true"};
  ExpectFinished(WaitFor(StartRun(WriteCountingJob(kRecords), sync), kSecondsToEnd), kRecords);
  const std::string undisturbed = ModelDigest();
  ASSERT_EQ(undisturbed.size(), 16u);
  fs::rename(RunDir(), Path("undisturbed"));

  const Command run = StartRun(WriteCountingJob(kRecords), sync);
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  Signal("nn_worker", 0, SIGKILL);
  ASSERT_TRUE(WaitForGenerations(2)) << ReadFile(run.err_path);
  EXPECT_EQ(Satrap({"scale", RunDir(), "embedding_ps.replicas=3"}).exit_code, 0);
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(ModelDigest(), undisturbed);
}

}  // namespace
}  // namespace satrap
