// The signs of life that a process gives to the one that has started it: a byte into a pipe, from
// the loop that must not stand still. A process that is stopped, as by SIGSTOP, or whose loop hangs
// gives none, and a supervisor kills it (deploy/pod/life_watch.h).
//
// The supervisor passes the pipe's end as --alive=DESCRIPTOR. Without that flag nobody asks for
// signs, and none are given. A pipe, unlike a file, has no disk to wait for, and ends with the
// process.

#ifndef SATRAP_COMMON_LIFE_LIFE_SIGN_H_
#define SATRAP_COMMON_LIFE_LIFE_SIGN_H_

#include <cstdint>
#include <thread>

#include "common/flags/flags.h"
#include "common/thread/mutex.h"

namespace satrap {

// A process that lives gives a sign at least this often.
inline constexpr int64_t kLifeSignPeriodMs = 1000;

// The flag --alive. It refuses a descriptor that is no pipe: signs would go into whatever file is
// opened at that number later.
Flag AliveFlag(int* descriptor);

// Thread-safe.
class LifeSign {
 public:
  // `descriptor` is a pipe that can be written, and stays the caller's; -1: nobody asks for signs.
  // Writes to it no longer block, and programs that this process starts do not inherit it.
  explicit LifeSign(int descriptor);
  bool is_asked_for() const { return descriptor_ >= 0; }
  // Never blocks. A sign that finds the pipe full is dropped: there are enough to be read.
  // REQUIRES: SIGPIPE is ignored
  void Give() const;

 private:
  const int descriptor_;
};

// Gives signs from a thread of its own, from its construction to its destruction: for a phase of
// which nobody knows how long it takes, and that has no loop. It finds only that the process is
// stopped. `sign` must outlive it.
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
