#include "common/thread/thread_pool_executor.h"

#include <sys/resource.h>

#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/denormals.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"

namespace satrap {

struct ThreadPoolExecutor::Rep {
  Mutex mutex;
  CondVar task_ready;
  CondVar timer_changed;
  bool stopping GUARDED_BY(mutex) = false;
  std::deque<Task> tasks GUARDED_BY(mutex);
  // Due timers run before waiting tasks. Many timers, such as the one for an answer WAIT, must meet
  // a deadline, and would miss it if they waited in a long queue.
  std::deque<Task> due_timers GUARDED_BY(mutex);
  // Ordered by due time; timers due at the same time keep the order of PostAfter.
  std::multimap<int64_t, Task> timers GUARDED_BY(mutex);
  // Only the constructor and Stop use this.
  std::vector<std::thread> threads;

  void RunTasks(int niceness) {
    SetFlushToZero();
    // On Linux each thread has a niceness of its own. If the change is refused, the niceness stays
    // as it is.
    if (niceness > 0) setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + niceness);
    while (true) {
      Task task;
      {
        MutexLock lock(&mutex);
        while (!stopping && tasks.empty() && due_timers.empty()) task_ready.Wait(&mutex);
        if (stopping) return;
        std::deque<Task>& queue = due_timers.empty() ? tasks : due_timers;
        task = std::move(queue.front());
        queue.pop_front();
      }
      task();
    }
  }

  // Moves the tasks of due timers to the queue. The timer thread runs no tasks itself, so a long
  // task does not delay timers.
  void RunTimers() {
    MutexLock lock(&mutex);
    while (!stopping) {
      const int64_t now_us = MonotonicUs();
      while (!timers.empty() && timers.begin()->first <= now_us) {
        due_timers.push_back(std::move(timers.begin()->second));
        timers.erase(timers.begin());
        task_ready.NotifyOne();
      }
      if (timers.empty()) {
        timer_changed.Wait(&mutex);
      } else {
        timer_changed.WaitForUs(&mutex, timers.begin()->first - now_us);
      }
    }
  }
};

ThreadPoolExecutor::ThreadPoolExecutor(int num_threads, int niceness) : rep_(new Rep) {
  CHECK(num_threads >= 1) << num_threads;
  for (int i = 0; i < num_threads; ++i) {
    rep_->threads.emplace_back([rep = rep_.get(), niceness] { rep->RunTasks(niceness); });
  }
  rep_->threads.emplace_back([rep = rep_.get()] { rep->RunTimers(); });
}

ThreadPoolExecutor::~ThreadPoolExecutor() { Stop(); }

void ThreadPoolExecutor::Post(Task task) {
  {
    MutexLock lock(&rep_->mutex);
    if (rep_->stopping) return;
    rep_->tasks.push_back(std::move(task));
  }
  rep_->task_ready.NotifyOne();
}

void ThreadPoolExecutor::PostAfter(int64_t delay_us, Task task) {
  const int64_t due_us = MonotonicUs() + delay_us;
  MutexLock lock(&rep_->mutex);
  if (rep_->stopping) return;
  const auto timer = rep_->timers.emplace(due_us, std::move(task));
  // The timer thread sleeps until the earliest timer is due, so it is woken only if the new timer
  // is the earliest.
  if (timer == rep_->timers.begin()) rep_->timer_changed.NotifyOne();
}

int64_t ThreadPoolExecutor::NowUs() const { return MonotonicUs(); }

void ThreadPoolExecutor::Stop() {
  {
    MutexLock lock(&rep_->mutex);
    rep_->stopping = true;
  }
  rep_->task_ready.NotifyAll();
  rep_->timer_changed.NotifyAll();
  for (std::thread& thread : rep_->threads) thread.join();
  rep_->threads.clear();
  // Destroying a dropped task may destroy an object that posts again, so the tasks are destroyed
  // after the lock is released.
  std::deque<Task> tasks;
  std::deque<Task> due_timers;
  std::multimap<int64_t, Task> timers;
  {
    MutexLock lock(&rep_->mutex);
    tasks.swap(rep_->tasks);
    due_timers.swap(rep_->due_timers);
    timers.swap(rep_->timers);
  }
}

}  // namespace satrap
