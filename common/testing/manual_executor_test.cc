#include "common/testing/manual_executor.h"

#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(ManualExecutorTest, RunsNothingByItself) {
  ManualExecutor executor;
  int runs = 0;
  executor.Post([&] { executor.Post([&] { ++runs; }); });
  EXPECT_EQ(executor.num_ready(), 1u);
  executor.RunReady();
  EXPECT_EQ(runs, 1);
}

TEST(ManualExecutorTest, MovesTheClockTimerByTimer) {
  ManualExecutor executor;
  std::vector<int64_t> times_us;
  executor.PostAfter(30, [&] { times_us.push_back(executor.NowUs()); });
  executor.PostAfter(10, [&] {
    times_us.push_back(executor.NowUs());
    executor.PostAfter(5, [&] { times_us.push_back(executor.NowUs()); });
  });
  executor.AdvanceBy(29);
  EXPECT_EQ(times_us, (std::vector<int64_t>{10, 15}));
  EXPECT_EQ(executor.num_timers(), 1u);
  executor.AdvanceBy(1);
  EXPECT_EQ(times_us, (std::vector<int64_t>{10, 15, 30}));
  EXPECT_EQ(executor.NowUs(), 30);
}

}  // namespace
}  // namespace satrap
