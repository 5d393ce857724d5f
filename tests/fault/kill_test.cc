// Tests the rows "SIGKILL of ..." of the table in docs/consistency.md, "What each failure does": a
// run survives the death of any of its processes at any moment, and trains each record once.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRecords = 100000;
constexpr double kSecondsToEnd = 120;
// The run takes no cuts. It has so many steps that the launcher, which polls four times a second,
// notices that the run trains.
const std::vector<std::string> kWithoutCuts = {"--set", "checkpoint.every_steps=0", "--set",
                                               "global_batch_size=128"};

class KillTest : public FaultFixture, public ::testing::WithParamInterface<const char*> {};

TEST_P(KillTest, ARunGoesOnFromItsNewestCut) {
  const std::string role = GetParam();
  const int index = role == "coordinator" ? 0 : 1;
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(2)) << ReadFile(run.err_path);
  Signal(role, index, SIGKILL);
  const CommandEnd end = WaitFor(run, kSecondsToEnd);
  ExpectFinished(end, kRecords);
  EXPECT_EQ(Generations(), 2);
  EXPECT_THAT(end.err, HasSubstr("was killed by signal 9 (Killed)"));
}

TEST_P(KillTest, ARunWithoutACutBeginsAgain) {
  const std::string role = GetParam();
  const Command run = StartRun(WriteCountingJob(kRecords), kWithoutCuts);
  // Kills as soon as the run trains. The test cannot wait until metrics.jsonl has a second line,
  // because a fast machine would end the run before that.
  ASSERT_TRUE(
      WaitUntil([&] { return ReadFile(run.err_path).find("\ntraining") != std::string::npos; }, 60))
      << ReadFile(run.err_path);
  Signal(role, 0, SIGKILL);
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(Generations(), 2);
}

INSTANTIATE_TEST_SUITE_P(EachRole, KillTest,
                         ::testing::Values("coordinator", "data_loader", "embedding_worker",
                                           "embedding_ps", "nn_worker"),
                         [](const auto& info) { return std::string(info.param); });

// The code has points at which a process kills itself. In this test it does so in generation 1,
// when it comes to the point for the second time.
class KillPointTest : public FaultFixture, public ::testing::WithParamInterface<const char*> {};

TEST_P(KillPointTest, ARunGoesOnAndTrainsEachRecordOnce) {
  const std::string point = GetParam();
  const Command run = StartRun(
      WriteCountingJob(kRecords, absl::StrCat("kill_points { point: ", point, " visit: 2 }")));
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(Generations(), 2) << "the point was not reached";
}

INSTANTIATE_TEST_SUITE_P(EachPoint, KillPointTest,
                         ::testing::Values("PS_AFTER_MARK", "PS_WHILE_WRITING", "PS_AFTER_WRITING",
                                           "RANK_BEFORE_MARK", "RANK_AFTER_MARK",
                                           "RANK_BEFORE_COMMIT", "RANK_AFTER_COMMIT",
                                           "COORDINATOR_BEFORE_LINK", "COORDINATOR_AFTER_LINK",
                                           "LOADER_AFTER_PUT", "WORKER_BEFORE_UPDATE",
                                           "WORKER_AFTER_UPDATE"),
                         [](const auto& info) { return std::string(info.param); });

// Between the halves of a step that is clipped as a whole, some processes have applied the step and
// others have not. A sync run that continues from its newest cut repeats the step from the same
// rows.
class ClippedStepTest : public FaultFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  // How a run with the kill points `more` ended.
  struct End {
    std::string digest;
    double steps, clipped_steps, mean_norm;
  };
  End RunToEnd(const std::string& more, int generations) {
    ExpectFinished(WaitFor(StartRun(WriteCountingJob(kRecords, more),
                                    {"--set", "mode=SYNC", "--set", "reproducible=true", "--set",
                                     "gradient_clip_norm=0.05"}),
                           kSecondsToEnd),
                   kRecords);
    EXPECT_EQ(Generations(), generations) << "the point was not reached";
    const std::string report = ReadFile(RunDir() + "/report.json");
    const End end = {ModelDigest(), JsonNumber(report, "gradient_norm.steps"),
                     JsonNumber(report, "gradient_norm.clipped_steps"),
                     JsonNumber(report, "gradient_norm.mean")};
    std::filesystem::rename(RunDir(), Path(generations == 1 ? "undisturbed" : "killed"));
    return end;
  }
  const End& Undisturbed() {
    static End end;
    if (end.digest.empty()) end = RunToEnd("", 1);
    return end;
  }
};

TEST_P(ClippedStepTest, ADeathBetweenItsHalvesLeavesTheModelOfAnUndisturbedRun) {
  const End undisturbed = Undisturbed();
  EXPECT_EQ(undisturbed.digest.size(), 16u);
  EXPECT_GT(undisturbed.clipped_steps, 0);
  const End killed =
      RunToEnd(absl::StrCat("kill_points { point: ", GetParam(), " replica: 1 visit: 40 }"), 2);
  EXPECT_EQ(killed.digest, undisturbed.digest);
  EXPECT_EQ(killed.steps, undisturbed.steps);
  EXPECT_EQ(killed.clipped_steps, undisturbed.clipped_steps);
  EXPECT_EQ(killed.mean_norm, undisturbed.mean_norm);
}

INSTANTIATE_TEST_SUITE_P(EachPoint, ClippedStepTest,
                         ::testing::Values("PS_BETWEEN_HALVES", "WORKER_BETWEEN_HALVES",
                                           "RANK_BETWEEN_HALVES"),
                         [](const auto& info) { return std::string(info.param); });

class TestPassTest : public FaultFixture {};

TEST_F(TestPassTest, ADeathInTheTestPassRepeatsTheTestPassAlone) {
  const Command run =
      StartRun(WriteCountingJob(kRecords, "kill_points { point: RANK_IN_TEST_PASS }"));
  const CommandEnd end = WaitFor(run, kSecondsToEnd);
  ExpectFinished(end, kRecords);
  EXPECT_EQ(Generations(), 2);
  EXPECT_EQ(JsonNumber(ReadFile(RunDir() + "/report.json"), "test.samples"), 2000);
  EXPECT_EQ(JsonNumber(ReadFile(RunDir() + "/report.json"), "samples"), kRecords);
}

// Stderr that blocks its writers, like a terminal that somebody holds with Ctrl-S, or a pipe that
// nobody reads.
class HeldStderrTest : public FaultFixture {
 protected:
  // Makes stderr of the first command a pipe that nobody reads.
  void SetUp() override {
    FaultFixture::SetUp();
    ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
    fifo_ = open(path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(fifo_, 0);
  }
  void TearDown() override {
    if (fifo_ >= 0) close(fifo_);
    FaultFixture::TearDown();
  }
  std::string path() const { return Path("command_0.err"); }
  void Fill() const {
    const std::string page(4096, '.');
    while (write(fifo_, page.data(), page.size()) > 0) {
    }
    while (write(fifo_, page.data(), 1) > 0) {
    }
  }
  // Reads until `words` have come. Then closes the pipe, so that no writer waits any more.
  bool ReadUntil(const std::string& words) {
    std::string text;
    char page[4096];
    pollfd waited = {fifo_, POLLIN, 0};
    while (text.find(words) == std::string::npos && poll(&waited, 1, 60000) > 0) {
      const ssize_t bytes = read(fifo_, page, sizeof(page));
      if (bytes > 0) text.append(page, static_cast<size_t>(bytes));
    }
    close(std::exchange(fifo_, -1));
    std::filesystem::remove(path());
    return text.find(words) != std::string::npos;
  }

 private:
  int fifo_ = -1;
};

TEST_F(HeldStderrTest, ADeathIsNoticedAndToldOnceSomebodyReads) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1));
  Fill();
  Signal("embedding_ps", 1, SIGKILL);
  EXPECT_TRUE(WaitForGenerations(2)) << "the launcher waits for the reader";
  EXPECT_TRUE(ReadUntil("was killed by signal 9 (Killed)"));
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(Generations(), 2);
}

}  // namespace
}  // namespace satrap
