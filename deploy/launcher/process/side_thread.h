// A thread for tasks that may block for ever: for example, they write to a disk that hangs, or to a
// terminal that is paused (Ctrl-S). Meanwhile the launcher must notice deaths and signals.
//
// A task may outlive this object and the code that posted it, so it must own all that it uses.
//
// Thread-safe.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_SIDE_THREAD_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_SIDE_THREAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "common/thread/mutex.h"

namespace satrap {

class SideThread {
 public:
  using Task = std::function<void()>;

  // At most `most` tasks wait or run at a time. The first Post starts the thread.
  explicit SideThread(size_t most);
  // Does not wait. The thread finishes the task that is running, and drops those that wait.
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Queues a task, after all that were posted before. Returns false, and does not queue it, if
  // `most` tasks are not done yet, or if no thread can be started now.
  bool Post(Task task);
  // Waits at most `timeout_ms` until all tasks are done. Returns whether they are.
  bool Await(int64_t timeout_ms);

 private:
  struct Work;
  static void Serve(const std::shared_ptr<Work>& work);

  const size_t most_;
  const std::shared_ptr<Work> work_;  // shared with the thread
  Mutex start_mutex_;
  std::thread thread_ GUARDED_BY(start_mutex_);
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_SIDE_THREAD_H_
