#include "common/thread/serial_executor.h"

#include <deque>
#include <thread>
#include <utility>

#include "common/thread/mutex.h"

namespace satrap {
namespace {

// After this many tasks in a row the thread goes back to the underlying executor, so that a busy
// SerialExecutor does not starve that executor's other tasks.
constexpr int kTasksPerTurn = 32;

}  // namespace

struct SerialExecutor::Rep : std::enable_shared_from_this<SerialExecutor::Rep> {
  explicit Rep(Executor* executor) : executor(executor) {}

  Executor* const executor;
  Mutex mutex;
  CondVar task_done;
  std::deque<Task> tasks GUARDED_BY(mutex);
  bool scheduled GUARDED_BY(mutex) = false;  // a turn is posted or running
  bool closed GUARDED_BY(mutex) = false;
  std::thread::id running_on GUARDED_BY(mutex);  // none: no task runs

  void Post(Task task) {
    {
      MutexLock lock(&mutex);
      if (closed) return;
      tasks.push_back(std::move(task));
      if (scheduled) return;
      scheduled = true;
    }
    executor->Post([self = shared_from_this()] { self->RunTurn(); });
  }

  // Runs the next task. Returns false if there is none.
  bool RunOne() {
    Task task;
    {
      MutexLock lock(&mutex);
      if (tasks.empty()) {
        scheduled = false;
        return false;
      }
      task = std::move(tasks.front());
      tasks.pop_front();
      running_on = std::this_thread::get_id();
    }
    task();
    // The task is destroyed before the next one begins, and before Close may return, because
    // destroying its captures may need the same protection as running it.
    task = nullptr;
    MutexLock lock(&mutex);
    running_on = std::thread::id();
    task_done.NotifyAll();
    return true;
  }

  void RunTurn() {
    for (int i = 0; i < kTasksPerTurn; ++i) {
      if (!RunOne()) return;
    }
    executor->Post([self = shared_from_this()] { self->RunTurn(); });
  }

  // Waits for the running task. If that task itself calls Close, does not wait.
  void Close() {
    std::deque<Task> dropped;  // outlives the lock, so tasks are destroyed without it
    MutexLock lock(&mutex);
    closed = true;
    dropped.swap(tasks);
    while (running_on != std::thread::id() && running_on != std::this_thread::get_id()) {
      task_done.Wait(&mutex);
    }
  }
};

SerialExecutor::SerialExecutor(Executor* executor) : rep_(std::make_shared<Rep>(executor)) {}

SerialExecutor::~SerialExecutor() { rep_->Close(); }

void SerialExecutor::Post(Task task) { rep_->Post(std::move(task)); }

void SerialExecutor::PostAfter(int64_t delay_us, Task task) {
  rep_->executor->PostAfter(
      delay_us, [rep = rep_, task = std::move(task)]() mutable { rep->Post(std::move(task)); });
}

int64_t SerialExecutor::NowUs() const { return rep_->executor->NowUs(); }

}  // namespace satrap
