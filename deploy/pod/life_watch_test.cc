#include "deploy/pod/life_watch.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

class LifeWatchTest : public testing::Test {
 protected:
  // Wakes every second, for `ms` in all.
  void Pass(int64_t ms) {
    for (int64_t passed_ms = 0; passed_ms < ms; passed_ms += LifeWatch::kTickMs) {
      now_ms_ += LifeWatch::kTickMs;
      watch_.OnWake(now_ms_);
    }
  }
  void Jump(int64_t ms) {
    now_ms_ += ms;
    watch_.OnWake(now_ms_);
  }

  int64_t now_ms_ = 1000000;
  LifeWatch watch_{LifeLimits(), now_ms_};
};

TEST_F(LifeWatchTest, ARoleIsSilentTwelveSecondsAfterItsLastSign) {
  watch_.OnSign();
  Pass(11000);
  EXPECT_FALSE(watch_.IsSilent());
  watch_.OnSign();
  Pass(11000);
  EXPECT_FALSE(watch_.IsSilent());
  Pass(1000);
  EXPECT_TRUE(watch_.IsSilent());
}

TEST_F(LifeWatchTest, TheFirstSignMayTakeAMinute) {
  Pass(59000);
  EXPECT_FALSE(watch_.IsSilent());
  Pass(1000);
  EXPECT_TRUE(watch_.IsSilent());
}

TEST_F(LifeWatchTest, AStandstillOfTheSupervisorDoesNotCount) {
  watch_.OnSign();
  Pass(9000);
  Jump(3600000);
  EXPECT_FALSE(watch_.IsSilent()) << "the role needs a moment for its next sign";
  Pass(1000);
  EXPECT_TRUE(watch_.IsSilent()) << "but no more than that";
}

TEST_F(LifeWatchTest, AWakeUpThatIsALittleLateCounts) {
  watch_.OnSign();
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(watch_.IsSilent());
    Jump(2000);
  }
  EXPECT_TRUE(watch_.IsSilent());
}

}  // namespace
}  // namespace satrap
