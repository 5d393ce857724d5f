#include "common/thread/serial_executor.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "common/testing/manual_executor.h"
#include "common/thread/mutex.h"
#include "common/thread/thread_pool_executor.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(SerialExecutorTest, RunsInOrderAndNeverInsidePost) {
  ManualExecutor below;
  SerialExecutor serial(&below);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) serial.Post([&, i] { order.push_back(i); });
  EXPECT_TRUE(order.empty());
  below.RunReady();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(SerialExecutorTest, LetsOthersHaveTheirTurn) {
  ManualExecutor below;
  SerialExecutor serial(&below);
  int ran = 0;
  int ran_before_other = -1;
  for (int i = 0; i < 1000; ++i) serial.Post([&] { ++ran; });
  below.Post([&] { ran_before_other = ran; });
  below.RunReady();
  EXPECT_EQ(ran, 1000);
  EXPECT_LT(ran_before_other, 1000);
}

TEST(SerialExecutorTest, NeverRunsTwoAtOnce) {
  ThreadPoolExecutor below(4);
  SerialExecutor serial(&below);
  constexpr int kTasks = 5000;
  int unguarded = 0;  // tsan would report a race on it
  std::atomic<bool> inside = false;
  std::atomic<int> overlaps = 0;
  Mutex mutex;
  CondVar changed;
  bool done = false;
  std::vector<std::thread> posters;
  for (int t = 0; t < 2; ++t) {
    posters.emplace_back([&] {
      for (int i = 0; i < kTasks; ++i) {
        serial.Post([&] {
          if (inside.exchange(true)) ++overlaps;
          const bool last = ++unguarded == 2 * kTasks;
          inside = false;
          if (!last) return;
          MutexLock lock(&mutex);
          done = true;
          changed.NotifyAll();
        });
      }
    });
  }
  for (std::thread& poster : posters) poster.join();
  MutexLock lock(&mutex);
  while (!done) changed.Wait(&mutex);
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(unguarded, 2 * kTasks);
}

TEST(SerialExecutorTest, TimersTakeTheirPlaceWhenTheirTimeComes) {
  ManualExecutor below;
  SerialExecutor serial(&below);
  std::vector<int> order;
  serial.PostAfter(1000, [&] { order.push_back(2); });
  serial.Post([&] { order.push_back(1); });
  below.AdvanceBy(999);
  EXPECT_EQ(order, (std::vector<int>{1}));
  below.AdvanceBy(1);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(serial.NowUs(), 1000);
}

TEST(SerialExecutorTest, ItsEndDropsWhatHasNotBegun) {
  ManualExecutor below;
  bool ran = false;
  auto owned = std::make_shared<int>(0);
  auto serial = std::make_unique<SerialExecutor>(&below);
  serial->Post([&ran, owned] { ran = true; });
  serial->PostAfter(10, [&ran, owned] { ran = true; });
  serial.reset();
  below.AdvanceBy(100);
  EXPECT_FALSE(ran);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(SerialExecutorTest, ATaskMayEndItsOwnExecutor) {
  ManualExecutor below;
  auto serial = std::make_unique<SerialExecutor>(&below);
  bool second_ran = false;
  serial->Post([&] { serial.reset(); });
  serial->Post([&] { second_ran = true; });
  below.RunReady();
  EXPECT_EQ(serial, nullptr);
  EXPECT_FALSE(second_ran);
}

TEST(SerialExecutorTest, ItsEndWaitsForTheTaskThatRuns) {
  ThreadPoolExecutor below(2);
  auto serial = std::make_unique<SerialExecutor>(&below);
  std::atomic<bool> begun = false;
  std::atomic<bool> go_on = false;
  std::atomic<bool> ended = false;
  serial->Post([&] {
    begun = true;
    begun.notify_all();
    go_on.wait(false);
    ended = true;
  });
  begun.wait(false);
  below.PostAfter(2000, [&] {
    go_on = true;
    go_on.notify_all();
  });
  serial.reset();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace satrap
