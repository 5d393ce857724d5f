// A process shows the supervisor that started it that it is alive: the loop that must not stand
// still writes bytes to a pipe. If the process is stopped, as by SIGSTOP, or its loop hangs, no
// bytes come, and the supervisor kills it (deploy/pod/life_watch.h).
//
// The supervisor passes the descriptor of the pipe's end as --alive=DESCRIPTOR. Without that flag
// no signs are given. A pipe is used instead of a file because it has no disk to wait for, and ends
// with the process.

#ifndef SATRAP_COMMON_LIFE_LIFE_SIGN_H_
#define SATRAP_COMMON_LIFE_LIFE_SIGN_H_

#include <cstdint>
#include <thread>

#include "common/flags/flags.h"
#include "common/thread/mutex.h"

namespace satrap {

// A living process gives a sign at least this often.
inline constexpr int64_t kLifeSignPeriodMs = 1000;

// The flag --alive. It refuses a descriptor that is not a pipe: otherwise the signs would be
// written to whatever file gets that number later.
Flag AliveFlag(int* descriptor);

// Thread-safe.
class LifeSign {
 public:
  // `descriptor` is the end of a pipe to which signs are written; it remains the caller's. -1:
  // gives no signs. From now on, writes to it do not block, and programs that this process starts
  // do not inherit it.
  explicit LifeSign(int descriptor);
  bool is_asked_for() const { return descriptor_ >= 0; }
  // Never blocks. If the pipe is full, the sign is dropped, because enough signs wait to be read.
  // REQUIRES: SIGPIPE is ignored
  void Give() const;

 private:
  const int descriptor_;
};

// Gives signs on a separate thread for as long as this object exists. Use it in a phase that may
// take any time and has no loop. The signs end only if the whole process is stopped. `sign` must
// outlive this object.
class LifeSignThread {
 public:
  explicit LifeSignThread(const LifeSign* sign);
  ~LifeSignThread();
  LifeSignThread(const LifeSignThread&) = delete;
  LifeSignThread& operator=(const LifeSignThread&) = delete;

 private:
  void Run();

  const LifeSign* const sign_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_LIFE_LIFE_SIGN_H_
