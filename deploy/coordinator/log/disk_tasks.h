// Runs the coordinator's file work: one task at a time, in order. Also tells whether the running
// task has not returned for too long (Hangs). Somebody has to ask for that regularly, because a
// disk that hangs returns no error.
//
// Thread-safe. Its lock is held only briefly, so a caller may hold a lock of its own.

#ifndef SATRAP_DEPLOY_COORDINATOR_LOG_DISK_TASKS_H_
#define SATRAP_DEPLOY_COORDINATOR_LOG_DISK_TASKS_H_

#include <atomic>
#include <cstdint>

#include "absl/types/optional.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "common/thread/serial_executor.h"

namespace satrap {

class DiskTasks {
 public:
  // `clock` gives the time, and `executor` runs the tasks. Neither is owned.
  DiskTasks(Executor* clock, Executor* executor) : clock_(clock), disk_(executor) {}
  // The destructor drops the tasks that have not started and waits for the running one, which takes
  // for ever if the disk hangs.
  ~DiskTasks() = default;

  void Post(Task task);
  // Whether a task is running or waiting to run.
  bool busy() const { return tasks_ > 0; }
  // Restarts the clock of the running task. A task of many parts calls this before each part.
  void RestartClock();
  // Whether the running task has taken longer than `limit_us`. `stall_us` is the time for which
  // this process was suspended since the last call; it does not count.
  bool Hangs(int64_t now_us, int64_t stall_us, int64_t limit_us);

 private:
  Executor* const clock_;
  std::atomic<int> tasks_ = 0;  // posted and not over
  Mutex mutex_;
  absl::optional<int64_t> since_us_ GUARDED_BY(mutex_);  // the running task's start
  SerialExecutor disk_;  // the last member: its destructor waits for the running task
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_LOG_DISK_TASKS_H_
