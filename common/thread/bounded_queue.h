// A BoundedQueue passes values from producer threads to consumer threads, first in, first out. It
// holds at most `capacity` values; a producer waits while it is full.
//
// For threads that may block, such as file readers and writers. Tasks of an Executor must not use
// it.
//
// Thread-safe. REQUIRES: no thread waits in the queue when it is destroyed.

#ifndef SATRAP_COMMON_THREAD_BOUNDED_QUEUE_H_
#define SATRAP_COMMON_THREAD_BOUNDED_QUEUE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/thread/mutex.h"

namespace satrap {

template <typename T>
class BoundedQueue {
 public:
  // REQUIRES: capacity >= 1
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) { CHECK(capacity >= 1); }

  // Waits while the queue is full. Returns false and drops `value` if the queue is closed, before
  // or during the wait.
  bool Push(T value) {
    MutexLock lock(&mutex_);
    while (!closed_ && values_.size() >= capacity_) not_full_.Wait(&mutex_);
    if (closed_) return false;
    values_.push_back(std::move(value));
    not_empty_.NotifyOne();
    return true;
  }

  // Waits for a value. Returns none once the queue is closed and empty.
  absl::optional<T> Pop() {
    MutexLock lock(&mutex_);
    while (!closed_ && values_.empty()) not_empty_.Wait(&mutex_);
    return TakeFirst();
  }

  // As Pop, but also returns none if no value came within `timeout_ms`.
  absl::optional<T> PopWithin(int64_t timeout_ms) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    MutexLock lock(&mutex_);
    while (!closed_ && values_.empty()) {
      const auto left = deadline - Clock::now();
      if (left <= Clock::duration::zero()) return absl::nullopt;
      not_empty_.WaitForUs(&mutex_,
                           1 + std::chrono::duration_cast<std::chrono::microseconds>(left).count());
    }
    return TakeFirst();
  }

  // Refuses further values; those in the queue can still be taken. Idempotent.
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    not_full_.NotifyAll();
    not_empty_.NotifyAll();
  }

 private:
  absl::optional<T> TakeFirst() REQUIRES(mutex_) {
    if (values_.empty()) return absl::nullopt;
    absl::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    not_full_.NotifyOne();
    return value;
  }

  const size_t capacity_;
  Mutex mutex_;
  CondVar not_full_;
  CondVar not_empty_;
  std::deque<T> values_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_THREAD_BOUNDED_QUEUE_H_
