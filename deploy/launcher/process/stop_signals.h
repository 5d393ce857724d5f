// The signals that ask a process to stop: SIGINT, SIGTERM, SIGHUP and SIGQUIT. SIGHUP and SIGQUIT
// are left out if the parent has set them to be ignored (nohup).
//
// One request to stop may arrive as several signals: timeout(1) sends SIGTERM to the process and to
// its group, and a program on the same terminal may pass on a Ctrl-C that this process has received
// itself. So a repeat of the first signal counts only if it certainly came at least a second after
// the first one was read. That is certain if a call of Take, at least a second after the first
// signal was read, found no signal waiting. The kernel does not say when a signal came, and keeps
// only one of each kind, so a signal that waits for a busy reader is treated as the same request.
// Therefore a program that waits for signals must call Take several times a second.
//
// But if a person presses the key again, that is a second request. So if two signals both come from
// the terminal's keys, both count, unless a repeat by a program is still unread when the second key
// is pressed.
//
// As long as the object lives, the signals are blocked in the thread that made it, and are read as
// they come. The destructor consumes signals that are still unread, or leaves them to their usual
// effect (LeaveUnread). Not thread-safe.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_STOP_SIGNALS_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_STOP_SIGNALS_H_

#include <csignal>
#include <cstdint>
#include <functional>

#include "absl/types/optional.h"
#include "common/thread/clock.h"

namespace satrap {

class StopSignals {
 public:
  // `now_ms` is the clock for the limit of one second (see above); it must not go backwards.
  // REQUIRES: called on the main thread; no other thread has these signals unblocked
  explicit StopSignals(std::function<int64_t()> now_ms = MonotonicMs);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Returns the next signal that has come and that counts; 0 if there is none. Never blocks.
  int Take();
  // Call this if the destructor must not consume unread signals. They then have, as soon as they
  // are unblocked, the effect that they would have had without this object.
  void LeaveUnread() { leave_unread_ = true; }
  // The first signal that Take has returned; 0 if it has returned none.
  int first() const { return first_; }
  // Readable when a signal has come.
  int fd() const { return fd_; }
  // The set of signals that was blocked before, which child processes should have.
  const sigset_t& before() const { return before_; }

 private:
  struct Received {
    int signal = 0;
    bool is_key = false;  // the terminal sent it
  };
  absl::optional<Received> Read();

  const std::function<int64_t()> now_ms_;
  int first_ = 0;
  int64_t first_ms_ = 0;
  bool first_is_key_ = false;
  int64_t none_ms_ = 0;  // when Take last found no signal waiting
  bool leave_unread_ = false;
  int fd_ = -1;
  sigset_t before_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_STOP_SIGNALS_H_
