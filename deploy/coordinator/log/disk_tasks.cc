#include "deploy/coordinator/log/disk_tasks.h"

#include <algorithm>
#include <utility>

namespace satrap {

void DiskTasks::Post(Task task) {
  ++tasks_;
  disk_.Post([this, task = std::move(task)]() mutable {
    RestartClock();
    task();
    MutexLock lock(&mutex_);
    since_us_.reset();
    --tasks_;
  });
}

void DiskTasks::RestartClock() {
  MutexLock lock(&mutex_);
  since_us_ = clock_->NowUs();
}

bool DiskTasks::Hangs(int64_t now_us, int64_t stall_us, int64_t limit_us) {
  MutexLock lock(&mutex_);
  if (!since_us_.has_value()) return false;
  // The task may have begun after the process was suspended.
  *since_us_ = std::min(now_us, *since_us_ + stall_us);
  return now_us - *since_us_ > limit_us;
}

}  // namespace satrap
