// Tests a second coordinator or a second launcher for a run that already has one:
// docs/consistency.md, "What each failure does".

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRecords = 100000;
constexpr double kSecondsToEnd = 120;
constexpr int kExitStartAgain = 75;

class RivalTest : public FaultFixture {};

// The log lets only the newest generation continue. So the second coordinator ends the run's
// generation, and the generation that the launcher starts next ends the second coordinator's.
TEST_F(RivalTest, ASecondCoordinatorCostsARestartAndNoRecord) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const Command second = Start("deploy/coordinator/coordinator",
                               {absl::StrCat("--config=", RunDir(), "/job.textproto"),
                                absl::StrCat("--listen=unix:", Path("second"))});
  const CommandEnd refused = WaitFor(second, 30);
  EXPECT_EQ(refused.exit_code, kExitStartAgain) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("another coordinator has begun a later generation"));
  const CommandEnd end = WaitFor(run, kSecondsToEnd);
  ExpectFinished(end, kRecords);
  EXPECT_THAT(end.err, HasSubstr("another coordinator has begun a later generation"));
  EXPECT_EQ(Generations(), 3) << "the run's, the second coordinator's, the run's";
}

TEST_F(RivalTest, ResumeBesideALivingLauncherIsRefused) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const CommandEnd second = Resume();
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr(absl::StrCat("is being run by process ", run.pid)));
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(Generations(), 1);
}

}  // namespace
}  // namespace satrap
