// std::mutex with clang's thread-safety annotations. absl::Mutex is not used because Debian's build
// of it is not instrumented, so ThreadSanitizer reports false races with it.
//
//   Mutex mutex_;
//   int count_ GUARDED_BY(mutex_);

#ifndef SATRAP_COMMON_THREAD_MUTEX_H_
#define SATRAP_COMMON_THREAD_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

// GUARDED_BY and NO_THREAD_SAFETY_ANALYSIS are Abseil's, because its status.h includes them anyway.
#include "absl/base/thread_annotations.h"

#if defined(__clang__)
#define SATRAP_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define SATRAP_THREAD_ANNOTATION(x)
#endif

#define CAPABILITY(x) SATRAP_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY SATRAP_THREAD_ANNOTATION(scoped_lockable)
#define REQUIRES(...) SATRAP_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) SATRAP_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) SATRAP_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) SATRAP_THREAD_ANNOTATION(release_capability(__VA_ARGS__))

namespace satrap {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex for as long as this object lives.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() RELEASE() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Spurious wake-ups are possible: wait in a loop that checks the condition.
class CondVar {
 public:
  void Wait(Mutex* mutex) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False if `timeout_ms` passed without a notification.
  bool WaitFor(Mutex* mutex, int64_t timeout_ms) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    return WaitForUs(mutex, timeout_ms * 1000);
  }
  bool WaitForUs(Mutex* mutex, int64_t timeout_us) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    const auto status = condition_.wait_for(lock, std::chrono::microseconds(timeout_us));
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_THREAD_MUTEX_H_
