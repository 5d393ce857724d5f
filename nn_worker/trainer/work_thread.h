// One thread that runs tasks in the order in which they were posted. Unlike those of an executor,
// its tasks may block on a collective, a file or a peer.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_TRAINER_WORK_THREAD_H_
#define SATRAP_NN_WORKER_TRAINER_WORK_THREAD_H_

#include <deque>
#include <thread>

#include "common/thread/executor.h"
#include "common/thread/mutex.h"

namespace satrap {

class WorkThread {
 public:
  WorkThread();
  // Waits for the running task and drops those that have not begun.
  ~WorkThread();
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  void Post(Task task);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_WORK_THREAD_H_
