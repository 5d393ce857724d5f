// An Executor runs tasks, and is the clock of the engines that use it. Engines take one as a
// parameter, so that the simulation can run the engines of all roles in one thread and in simulated
// time.
//
// Implementations: ThreadPoolExecutor (thread_pool_executor.h), the simulation's event loop
// (tests/simulation). Thread-safe.

#ifndef SATRAP_COMMON_THREAD_EXECUTOR_H_
#define SATRAP_COMMON_THREAD_EXECUTOR_H_

#include <cstdint>

#include "absl/functional/any_invocable.h"

namespace satrap {

using Task = absl::AnyInvocable<void()>;

class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `task` once, later, on some thread of the executor; never inside this call. Tasks of one
  // executor may run at the same time and in any order. Tasks never block: if a request must wait,
  // it is kept as an object until an event posts its task.
  virtual void Post(Task task) = 0;

  // Like Post, but `task` does not run before `delay_us` microseconds have passed. A timer cannot
  // be cancelled: its task checks whether there is still something to do. Timers that are pending
  // when the executor stops are dropped.
  virtual void PostAfter(int64_t delay_us, Task task) = 0;

  // Microseconds of a clock that never goes back; its zero is arbitrary.
  virtual int64_t NowUs() const = 0;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_THREAD_EXECUTOR_H_
