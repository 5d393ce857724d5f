#include "nn_worker/trainer/work_thread.h"

#include <utility>

#include "common/numeric/denormals.h"

namespace satrap {

WorkThread::WorkThread() : thread_([this] { Run(); }) {}

WorkThread::~WorkThread() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  changed_.NotifyAll();
  thread_.join();
}

void WorkThread::Post(Task task) {
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  changed_.NotifyOne();
}

void WorkThread::Run() {
  SetFlushToZero();
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace satrap
