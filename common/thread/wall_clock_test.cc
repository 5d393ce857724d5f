#include "common/thread/wall_clock.h"

#include <ctime>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(WallClock, TellsTheTimeOfDayInMilliseconds) {
  const int64_t before_s = time(nullptr);
  const int64_t now_ms = UnixMs();
  const int64_t after_s = time(nullptr);
  // Allows for a second less, because time() may lag behind by a tick of the kernel.
  EXPECT_GE(now_ms, (before_s - 1) * 1000);
  EXPECT_LT(now_ms, (after_s + 2) * 1000);
}

}  // namespace
}  // namespace satrap
