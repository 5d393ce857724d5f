#include "nn_worker/trainer/work_thread.h"

#include <future>
#include <vector>

#include "common/testing/denormal_probe.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(WorkThreadTest, RunsTasksInOrder) {
  WorkThread thread;
  std::vector<int> ran;
  std::promise<void> done;
  for (int i = 0; i < 10; ++i) thread.Post([&ran, i] { ran.push_back(i); });
  thread.Post([&done] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(WorkThreadTest, TasksFlushDenormalsToZero) {
  std::promise<bool> flushes;
  WorkThread thread;
  thread.Post([&] { flushes.set_value(FlushesToZeroHere()); });
  EXPECT_TRUE(flushes.get_future().get());
}

TEST(WorkThreadTest, ItsEndWaitsForTheRunningTask) {
  std::promise<void> running;
  std::promise<void> go_on;
  bool finished = false;
  {
    WorkThread thread;
    thread.Post([&] {
      running.set_value();
      go_on.get_future().wait();
      finished = true;
    });
    running.get_future().wait();
    go_on.set_value();
  }
  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace satrap
