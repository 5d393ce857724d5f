// Tests cuts that a run cannot or need not begin from: docs/consistency.md, "What each failure
// does". A cut that is damaged or foreign is refused with one message, and the refusal costs the
// run nothing.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kRecords = 100000;

void FlipABit(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 4));
}

class CutTest : public FaultFixture {
 protected:
  // Leaves a killed run of the job in Path(name), so that RunDir() is free for the next run.
  // Returns the newest cut of the killed run.
  std::string LeaveAnotherRun(const std::string& name, const std::string& job) {
    LeaveAKilledRun(job);
    const std::string cut = fs::path(NewestCut()).filename();
    fs::rename(RunDir(), Path(name));
    return Path(name) + "/checkpoints/" + cut;
  }
};

TEST_F(CutTest, AnOlderCutCanBeResumedFrom) {
  const Command run = StartRun(WriteCountingJob(kRecords), {"--set", "checkpoint.keep=100"});
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const std::string older = fs::path(NewestCut()).filename();
  ASSERT_TRUE(WaitForCuts(3)) << ReadFile(run.err_path);
  SendSignal(run.pid, SIGKILL);
  EXPECT_EQ(WaitFor(run, 60).exit_code, -1);
  EXPECT_TRUE(NobodyIsLeft());
  ExpectFinished(Resume({"--from", older}), kRecords);
}

TEST_F(CutTest, ACutWithAFlippedBitIsRefusedWithItsFile) {
  LeaveAKilledRun(WriteCountingJob(kRecords));
  std::string damaged;
  for (const auto& entry : fs::directory_iterator(NewestCut())) {
    if (entry.path().extension() == ".rows") damaged = entry.path();
  }
  ASSERT_FALSE(damaged.empty());
  FlipABit(damaged, 200);
  const CommandEnd verified = Satrap({"checkpoint", "verify", NewestCut()});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out + verified.err, HasSubstr(fs::path(damaged).filename().string()));
  const CommandEnd refused = Resume();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(fs::path(damaged).filename().string()),
                                 HasSubstr("--from CUT"), Not(HasSubstr("` continues from"))));
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(CutTest, AMissingFileOfACutIsNamed) {
  LeaveAKilledRun(WriteCountingJob(kRecords));
  fs::remove(NewestCut() + "/dense.bin");
  const CommandEnd refused = Resume();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("dense.bin"), HasSubstr("--from CUT")));
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(CutTest, CutsOfAnotherRunAndOfAnotherJobAreRefused) {
  const std::string job = WriteCountingJob(kRecords);
  const std::string same_job = LeaveAnotherRun("same_job", job);
  const std::string other_job = LeaveAnotherRun("other_job", WriteCountingJob(kRecords, "seed: 2"));
  LeaveAKilledRun(WriteCountingJob(kRecords));
  const int generations = Generations();
  for (const std::string& cut : {same_job, other_job}) {
    const CommandEnd refused = Resume({"--from", cut});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr(cut), HasSubstr("a run continues only from its own cuts")));
  }
  EXPECT_EQ(Generations(), generations) << "nothing began from them";
  ExpectFinished(Resume(), kRecords);
}

// The foreign cut's folder has the name of the run's own newest cut.
TEST_F(CutTest, ACutOfAnotherRunInThePlaceOfTheNewestIsRefused) {
  const std::string job = WriteCountingJob(kRecords);
  const std::string foreign = LeaveAnotherRun("other", job);
  LeaveAKilledRun(job);
  const std::string newest = NewestCut();
  fs::rename(newest, Path("put_aside"));
  fs::copy(foreign, newest, fs::copy_options::recursive);
  const CommandEnd refused = Resume();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(fs::path(newest).filename().string()),
                                 HasSubstr("is not the cut that the run's log names")));
  fs::remove_all(newest);
  fs::rename(Path("put_aside"), newest);
  ExpectFinished(Resume(), kRecords);
}

}  // namespace
}  // namespace satrap
