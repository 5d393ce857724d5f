// The signals that ask a launcher to stop: SIGINT, SIGTERM, SIGHUP and SIGQUIT, without those of the
// last two that its parent has set to be ignored (nohup).
//
// Programs such as timeout(1) send SIGTERM twice, to the process and to its group. So a repeat of
// the first signal within a second counts only if it is SIGINT, which comes from a key.
//
// They are blocked in the thread that made the object for as long as it lives, and are read as they
// come. Signals that nobody has read by then are consumed by the destructor. Not thread-safe.

#ifndef SATRAP_DEPLOY_LAUNCHER_STOP_SIGNALS_H_
#define SATRAP_DEPLOY_LAUNCHER_STOP_SIGNALS_H_

#include <csignal>
#include <cstdint>

namespace satrap {

class StopSignals {
 public:
  // REQUIRES: the main thread, and no other one that leaves these signals unblocked
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The next signal that has come and counts; 0 if there is none. Never blocks.
  int Take();
  // The first one that Take has returned; 0 if none.
  int first() const { return first_; }
  // Readable when Take has something to return.
  int fd() const { return fd_; }

 private:
  // The next signal that has come; 0 if there is none.
  int Read();

  int first_ = 0;
  int64_t first_ms_ = 0;  // MonotonicMs of it
  int fd_ = -1;
  sigset_t before_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_STOP_SIGNALS_H_
