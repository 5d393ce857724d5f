// A ManualExecutor runs its tasks only when a test tells it to: in the test's thread, in the order
// in which they were posted, on a clock that only the test advances. A test sees the same order on
// every run.
//
// Not thread-safe: everything happens in the test's thread.

#ifndef SATRAP_COMMON_TESTING_MANUAL_EXECUTOR_H_
#define SATRAP_COMMON_TESTING_MANUAL_EXECUTOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "common/thread/executor.h"

namespace satrap {

class ManualExecutor final : public Executor {
 public:
  void Post(Task task) override { ready_.push_back(std::move(task)); }
  void PostAfter(int64_t delay_us, Task task) override {
    timers_.emplace(now_us_ + delay_us, std::move(task));
  }
  int64_t NowUs() const override { return now_us_; }

  // Runs ready tasks, and tasks that these post, until none is left. A timer that is due is ready.
  void RunReady() {
    while (true) {
      while (!timers_.empty() && timers_.begin()->first <= now_us_) TakeFirstTimer();
      if (ready_.empty()) return;
      Task task = std::move(ready_.front());
      ready_.pop_front();
      task();
    }
  }

  // Runs the task that has been ready longest; false if there is none. A timer's task counts only
  // after RunReady or AdvanceBy has found that the timer is due.
  bool RunOne() {
    if (ready_.empty()) return false;
    Task task = std::move(ready_.front());
    ready_.pop_front();
    task();
    return true;
  }

  // Advances the clock by `us`, in steps: at the time of each timer in between, it runs everything
  // that is ready.
  void AdvanceBy(int64_t us) {
    const int64_t end_us = now_us_ + us;
    RunReady();
    while (!timers_.empty() && timers_.begin()->first <= end_us) {
      now_us_ = std::max(now_us_, timers_.begin()->first);
      RunReady();
    }
    now_us_ = end_us;
  }

  // Moves the clock by `us` and runs nothing, as if the process had been suspended: timers that
  // became due meanwhile run late, in the next RunReady or AdvanceBy.
  void JumpBy(int64_t us) { now_us_ += us; }

  size_t num_ready() const { return ready_.size(); }
  size_t num_timers() const { return timers_.size(); }

 private:
  void TakeFirstTimer() {
    ready_.push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
  }

  int64_t now_us_ = 0;
  std::deque<Task> ready_;
  std::multimap<int64_t, Task> timers_;  // equal times in the order of PostAfter
};

}  // namespace satrap

#endif  // SATRAP_COMMON_TESTING_MANUAL_EXECUTOR_H_
