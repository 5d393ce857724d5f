#include "common/thread/clock.h"

#include <time.h>

#include "gtest/gtest.h"

namespace satrap {
namespace {

int64_t SystemUs() {
  timespec now;
  EXPECT_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
  return int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

TEST(Clock, TellsTheTimeOfTheSystemsMonotonicClock) {
  const int64_t before_us = SystemUs();
  const int64_t us = MonotonicUs();
  const int64_t ms = MonotonicMs();
  const double seconds = MonotonicSeconds();
  const int64_t after_us = SystemUs();
  EXPECT_LE(before_us, us);
  EXPECT_LE(us / 1000, ms);
  EXPECT_LE(ms, after_us / 1000);
  EXPECT_LE(static_cast<double>(us) * 1e-6, seconds);
  EXPECT_LE(seconds, static_cast<double>(after_us) * 1e-6);
}

}  // namespace
}  // namespace satrap
