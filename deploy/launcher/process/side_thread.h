// A thread for tasks that may block for ever: they write to a disk that hangs, or to a terminal
// that somebody holds (Ctrl-S). The launcher must notice deaths and signals meanwhile.
//
// A task may outlive this object and what posted it, so it must own all that it uses.
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

  // At most `most` tasks wait or run at a time. The thread is started by the first Post.
  explicit SideThread(size_t most);
  // Does not wait: the thread finishes the task that it has begun, and drops the others.
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Returns whether the task will be run, after all that were posted before: false if `most` of
  // them are not done, or if no thread can be started now.
  bool Post(Task task);
  // Returns whether all tasks are done, after waiting for that for at most `timeout_ms`.
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
