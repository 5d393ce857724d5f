#include "common/thread/thread_pool_executor.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "common/testing/denormal_probe.h"
#include "common/thread/mutex.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// A gate that opens once. Test threads wait at it, and so do tasks that keep a thread busy.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    opened_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (!open_) opened_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar opened_;
  bool open_ GUARDED_BY(mutex_) = false;
};

TEST(ThreadPoolExecutorTest, TasksFlushDenormalsToZero) {
  bool now = false, later = false;
  Gate ran_now, ran_later;
  ThreadPoolExecutor executor(1);
  executor.Post([&] {
    now = FlushesToZeroHere();
    ran_now.Open();
  });
  executor.PostAfter(1, [&] {
    later = FlushesToZeroHere();
    ran_later.Open();
  });
  ran_now.Wait();
  ran_later.Wait();
  EXPECT_TRUE(now);
  EXPECT_TRUE(later);
}

TEST(ThreadPoolExecutorTest, ItsThreadsAreNicerThanTheProcessIfAskedTo) {
  const int process = getpriority(PRIO_PROCESS, 0);
  int plain = 0, nicer = 0;
  Gate ran_plain, ran_nicer;
  ThreadPoolExecutor plain_executor(1);
  ThreadPoolExecutor nicer_executor(1, /*niceness=*/3);
  plain_executor.Post([&] {
    plain = getpriority(PRIO_PROCESS, 0);
    ran_plain.Open();
  });
  nicer_executor.Post([&] {
    nicer = getpriority(PRIO_PROCESS, 0);
    ran_nicer.Open();
  });
  ran_plain.Wait();
  ran_nicer.Wait();
  EXPECT_EQ(plain, process);
  EXPECT_EQ(nicer, std::min(process + 3, 19));
}

TEST(ThreadPoolExecutorTest, RunsEveryTaskOnce) {
  constexpr int kTasks = 1000;
  std::vector<std::atomic<int>> runs(kTasks);
  std::atomic<int> left = kTasks;
  Gate all_ran;
  ThreadPoolExecutor executor(4);
  for (int i = 0; i < kTasks; ++i) {
    executor.Post([&, i] {
      ++runs[i];
      if (--left == 0) all_ran.Open();
    });
  }
  all_ran.Wait();
  for (const auto& count : runs) EXPECT_EQ(count, 1);
}

TEST(ThreadPoolExecutorTest, RunsTasksAtTheSameTime) {
  Gate first;
  Gate second;
  ThreadPoolExecutor executor(2);
  executor.Post([&] {
    first.Open();
    second.Wait();  // with one thread the test would hang here
  });
  first.Wait();
  Gate done;
  executor.Post([&] {
    second.Open();
    done.Open();
  });
  done.Wait();
}

TEST(ThreadPoolExecutorTest, ATimerThatIsDueDoesNotWaitBehindAQueueOfTasks) {
  constexpr int kTasks = 200;
  Gate done;
  int tasks_before_timer = -1;
  int tasks_run = 0;
  ThreadPoolExecutor executor(1);
  executor.PostAfter(5000, [&] { tasks_before_timer = tasks_run; });
  for (int i = 0; i < kTasks; ++i) {
    executor.Post([&] {
      const int64_t until_us = executor.NowUs() + 1000;
      while (executor.NowUs() < until_us) continue;
      if (++tasks_run == kTasks) done.Open();
    });
  }
  done.Wait();
  EXPECT_GE(tasks_before_timer, 0) << "it ran before the last task";
  EXPECT_LT(tasks_before_timer, kTasks);
}

TEST(ThreadPoolExecutorTest, TimersRunNotBeforeTheirTimeAndInItsOrder) {
  Gate done;
  std::vector<int> order;
  ThreadPoolExecutor executor(1);
  const int64_t start_us = executor.NowUs();
  int64_t late_us = 0;
  executor.PostAfter(20000, [&] {
    order.push_back(2);
    late_us = executor.NowUs();
    done.Open();
  });
  executor.PostAfter(1000, [&] { order.push_back(1); });
  done.Wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_GE(late_us - start_us, 20000);
}

TEST(ThreadPoolExecutorTest, StopDropsWhatHasNotBegun) {
  Gate running;
  Gate go_on;
  std::atomic<bool> second_ran = false;
  auto owned = std::make_shared<int>(0);
  ThreadPoolExecutor executor(1);
  executor.Post([&] {
    running.Open();
    go_on.Wait();
  });
  running.Wait();
  executor.PostAfter(int64_t{3600} * 1000000, [owned, &second_ran] { second_ran = true; });
  go_on.Open();
  executor.Stop();
  executor.Post([owned, &second_ran] { second_ran = true; });
  executor.Stop();
  EXPECT_FALSE(second_ran);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(ThreadPoolExecutorTest, ADroppedTaskMayPostWhenDestroyed) {
  struct PostsAtEnd {
    ThreadPoolExecutor* executor;
    ~PostsAtEnd() {
      executor->Post([] {});
    }
  };
  ThreadPoolExecutor executor(1);
  auto poster = std::make_shared<PostsAtEnd>(PostsAtEnd{&executor});
  executor.PostAfter(int64_t{3600} * 1000000, [poster = std::move(poster)] {});
  executor.Stop();  // hangs if the drop happens under the lock
}

}  // namespace
}  // namespace satrap
