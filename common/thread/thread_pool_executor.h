// The Executor of a real process: `num_threads` threads and one timer thread.
//
// Tasks run with subnormal numbers flushed to zero (common/numeric/denormals.h).
//
// The destructor (or Stop) lets running tasks finish, drops those that have not begun, and joins
// the threads.

#ifndef SATRAP_COMMON_THREAD_THREAD_POOL_EXECUTOR_H_
#define SATRAP_COMMON_THREAD_THREAD_POOL_EXECUTOR_H_

#include <memory>

#include "common/thread/executor.h"

namespace satrap {

class ThreadPoolExecutor final : public Executor {
 public:
  // `niceness` is added to the process's own niceness for these threads, so that the kernel prefers
  // other threads. REQUIRES: num_threads >= 1, niceness >= 0
  explicit ThreadPoolExecutor(int num_threads, int niceness = 0);
  ~ThreadPoolExecutor() override;

  void Post(Task task) override;
  void PostAfter(int64_t delay_us, Task task) override;
  int64_t NowUs() const override;

  // Idempotent. REQUIRES: not called from a task of this executor
  void Stop();

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_THREAD_THREAD_POOL_EXECUTOR_H_
