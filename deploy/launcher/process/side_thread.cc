#include "deploy/launcher/process/side_thread.h"

#include <deque>
#include <system_error>
#include <utility>

#include "common/thread/clock.h"

namespace satrap {

struct SideThread::Work {
  Mutex mutex;
  CondVar changed;
  std::deque<Task> tasks GUARDED_BY(mutex);  // the first one may be running
  bool stopping GUARDED_BY(mutex) = false;
};

SideThread::SideThread(size_t most) : most_(most), work_(std::make_shared<Work>()) {}

SideThread::~SideThread() {
  MutexLock start_lock(&start_mutex_);
  if (!thread_.joinable()) return;
  bool busy;
  {
    MutexLock lock(&work_->mutex);
    work_->stopping = true;
    busy = !work_->tasks.empty();
    work_->changed.NotifyAll();
  }
  busy ? thread_.detach() : thread_.join();
}

bool SideThread::Post(Task task) {
  {
    MutexLock start_lock(&start_mutex_);
    if (!thread_.joinable()) {
      try {
        thread_ = std::thread(Serve, work_);
      } catch (const std::system_error&) {
        return false;  // too many threads on this machine now
      }
    }
  }
  MutexLock lock(&work_->mutex);
  if (work_->tasks.size() >= most_) return false;
  work_->tasks.push_back(std::move(task));
  work_->changed.NotifyAll();
  return true;
}

bool SideThread::Await(int64_t timeout_ms) {
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  MutexLock lock(&work_->mutex);
  while (!work_->tasks.empty()) {
    const int64_t left_ms = deadline_ms - MonotonicMs();
    if (left_ms <= 0) return false;
    work_->changed.WaitFor(&work_->mutex, left_ms);
  }
  return true;
}

void SideThread::Serve(const std::shared_ptr<Work>& work) {
  while (true) {
    Task* task;
    {
      MutexLock lock(&work->mutex);
      while (work->tasks.empty() && !work->stopping) work->changed.Wait(&work->mutex);
      if (work->stopping) return;
      task = &work->tasks.front();  // of a deque, so it stays where it is
    }
    (*task)();
    MutexLock lock(&work->mutex);
    work->tasks.pop_front();
    work->changed.NotifyAll();
  }
}

}  // namespace satrap
