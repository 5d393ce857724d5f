#include "deploy/coordinator/log/disk_tasks.h"

#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int64_t kSecondUs = 1000000;

class DiskTasksTest : public testing::Test {
 protected:
  bool Hangs(int64_t stall_us = 0) {
    return tasks_.Hangs(clock_.NowUs(), stall_us, /*limit_us=*/10 * kSecondUs);
  }

  ManualExecutor clock_;
  ManualExecutor disk_;
  DiskTasks tasks_{&clock_, &disk_};
};

TEST_F(DiskTasksTest, IsBusyFromThePostToTheEndOfTheTask) {
  EXPECT_FALSE(tasks_.busy());
  bool was_busy = false;
  tasks_.Post([&] { was_busy = tasks_.busy(); });
  EXPECT_TRUE(tasks_.busy());
  disk_.RunReady();
  EXPECT_TRUE(was_busy);
  EXPECT_FALSE(tasks_.busy());
}

TEST_F(DiskTasksTest, OnlyATaskThatRunsCanHang) {
  tasks_.Post([] {});
  clock_.JumpBy(100 * kSecondUs);
  EXPECT_FALSE(Hangs()) << "it has not begun";
  tasks_.Post([&] {
    EXPECT_FALSE(Hangs());
    clock_.JumpBy(10 * kSecondUs);
    EXPECT_FALSE(Hangs());
    clock_.JumpBy(1);
    EXPECT_TRUE(Hangs());
    tasks_.RestartClock();
    EXPECT_FALSE(Hangs());
    clock_.JumpBy(11 * kSecondUs);
  });
  disk_.RunReady();
  EXPECT_FALSE(Hangs()) << "it is over";
}

TEST_F(DiskTasksTest, TheTimeInWhichTheProcessStoodStillDoesNotCount) {
  tasks_.Post([&] {
    clock_.JumpBy(15 * kSecondUs);
    EXPECT_FALSE(Hangs(/*stall_us=*/6 * kSecondUs));
    clock_.JumpBy(kSecondUs);
    EXPECT_FALSE(Hangs());
    clock_.JumpBy(1);
    EXPECT_TRUE(Hangs());
    EXPECT_FALSE(Hangs(/*stall_us=*/1000 * kSecondUs)) << "but never begins later than now";
    clock_.JumpBy(10 * kSecondUs + 1);
    EXPECT_TRUE(Hangs());
  });
  disk_.RunReady();
}

}  // namespace
}  // namespace satrap
