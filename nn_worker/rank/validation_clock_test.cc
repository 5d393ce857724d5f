#include "nn_worker/rank/validation_clock.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int64_t kSecond = 1'000'000;

RankOptions EverySeconds(double seconds) {
  RankOptions options;
  options.has_valid = true;
  options.evaluation.set_every_seconds(seconds);
  return options;
}

TEST(ValidationClockTest, CountsFromTheEndOfTheLastValidation) {
  ValidationClock clock(EverySeconds(10));
  clock.Start(/*step=*/3, 5 * kSecond);
  EXPECT_FALSE(clock.IsDue(4, 15 * kSecond - 1));
  EXPECT_TRUE(clock.IsDue(4, 15 * kSecond));
  clock.Start(5, 20 * kSecond);
  EXPECT_FALSE(clock.IsDue(6, 30 * kSecond - 1));
  EXPECT_TRUE(clock.IsDue(6, 30 * kSecond));
}

TEST(ValidationClockTest, WaitsForAStepThatCounts) {
  ValidationClock clock(EverySeconds(10));
  clock.Start(3, 0);
  EXPECT_FALSE(clock.IsDue(3, 1000 * kSecond));
  EXPECT_TRUE(clock.IsDue(4, 1000 * kSecond));
}

TEST(ValidationClockTest, IsNeverDueAtOtherRanksOrWithoutASetOrAnInterval) {
  RankOptions other = EverySeconds(10);
  other.rank = 1;
  EXPECT_FALSE(ValidationClock(other).IsDue(1, 1000 * kSecond));
  RankOptions without = EverySeconds(10);
  without.has_valid = false;
  EXPECT_FALSE(ValidationClock(without).IsDue(1, 1000 * kSecond));
  EXPECT_FALSE(ValidationClock(EverySeconds(0)).IsDue(1, 1000 * kSecond));
}

}  // namespace
}  // namespace satrap
