// A SerialExecutor runs its tasks one at a time, in the order in which they were posted, on the
// threads of another executor. It occupies a thread only while it has tasks to run. Data that only
// its tasks use needs no mutex.
//
// Thread-safe.

#ifndef SATRAP_COMMON_THREAD_SERIAL_EXECUTOR_H_
#define SATRAP_COMMON_THREAD_SERIAL_EXECUTOR_H_

#include <cstdint>
#include <memory>

#include "common/thread/executor.h"

namespace satrap {

class SerialExecutor final : public Executor {
 public:
  // `executor` is not owned and must outlive this object and its tasks.
  explicit SerialExecutor(Executor* executor);

  // Drops the tasks that have not started and waits for the running task, unless that task itself
  // calls the destructor.
  ~SerialExecutor() override;

  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  void Post(Task task) override;
  // After `delay_us` the task is queued as if it had just been posted.
  void PostAfter(int64_t delay_us, Task task) override;
  int64_t NowUs() const override;

 private:
  struct Rep;
  // Shared with tasks on the underlying executor, which may outlive this object.
  const std::shared_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_THREAD_SERIAL_EXECUTOR_H_
