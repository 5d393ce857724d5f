#include "common/metrics/refresh.h"

#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RefreshEachSecond, RefreshesAtOnceAndThenOnceASecond) {
  ManualExecutor executor;
  int refreshed = 0;
  RefreshEachSecond(&executor, [&refreshed] { ++refreshed; });
  EXPECT_EQ(refreshed, 1);
  executor.AdvanceBy(999'999);
  EXPECT_EQ(refreshed, 1);
  executor.AdvanceBy(1);
  EXPECT_EQ(refreshed, 2);
  executor.AdvanceBy(3'000'000);
  EXPECT_EQ(refreshed, 5);
}

}  // namespace
}  // namespace satrap
