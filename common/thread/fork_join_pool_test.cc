#include "common/thread/fork_join_pool.h"

#include <atomic>
#include <vector>

#include "common/testing/denormal_probe.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(ForkJoinPoolTest, RunsEveryPartOnce) {
  for (int threads : {1, 2, 5}) {
    ForkJoinPool pool(threads);
    for (int64_t parts : {0, 1, 2, 7, 1000}) {
      std::vector<int> runs(parts, 0);
      pool.Run(parts, [&](int64_t part, int) { ++runs[part]; });
      EXPECT_EQ(runs, std::vector<int>(parts, 1)) << threads << " threads";
    }
  }
}

TEST(ForkJoinPoolTest, PartsFlushDenormalsToZeroInHelpersAndCaller) {
  for (int threads : {1, 3}) {
    ForkJoinPool pool(threads);
    for (int64_t parts : {1, 3}) {
      std::vector<int> flushes(parts, 0);
      std::atomic<int64_t> begun{0};
      pool.Run(parts, [&](int64_t part, int) {
        // No part ends before all have begun, so every thread gets exactly one part.
        ++begun;
        while (threads > 1 && parts == threads && begun < parts) {
        }
        flushes[part] = FlushesToZeroHere();
      });
      EXPECT_EQ(flushes, std::vector<int>(parts, 1)) << threads << " threads";
    }
  }
  EXPECT_FALSE(FlushesToZeroHere()) << "the caller's own mode is restored";
}

TEST(ForkJoinPoolTest, AThreadNumberIsNeverInUseTwice) {
  ForkJoinPool pool(4);
  std::vector<std::atomic<int>> users(4);
  std::atomic<int> clashes{0};
  for (int round = 0; round < 50; ++round) {
    pool.Run(64, [&](int64_t, int thread) {
      if (users[thread].fetch_add(1) != 0) ++clashes;
      users[thread].fetch_sub(1);
    });
  }
  EXPECT_EQ(clashes, 0);
}

TEST(ForkJoinPoolTest, ResultsOfARunAreSeenByTheNext) {
  ForkJoinPool pool(3);
  std::vector<int64_t> from(97, 0), to(97, 0);
  for (int round = 0; round < 2000; ++round) {
    pool.Run(97, [&](int64_t part, int) { to[part] = from[(part + 1) % 97] + 1; });
    from.swap(to);
  }
  EXPECT_EQ(from, std::vector<int64_t>(97, 2000));
}

}  // namespace
}  // namespace satrap
