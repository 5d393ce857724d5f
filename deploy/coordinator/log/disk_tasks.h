// The coordinator's file work: tasks that run one at a time, in order, and for how long the running
// one has not returned. A disk that hangs returns no error, so somebody has to ask.
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
  // The time of the running task begins anew. Call it in a task of many parts.
  void RestartClock();
  // Whether the running task has taken longer than `limit_us`. `stall_us`: for how long the process
  // has stood still since the last call, which does not count.
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
