// The signals that ask a process to stop: SIGINT, SIGTERM, SIGHUP and SIGQUIT, except those of the
// last two that its parent has set to be ignored (nohup).
//
// One request to stop may arrive as several signals: timeout(1) sends SIGTERM to the process and to
// its group, and a program that shares the terminal may pass on a Ctrl-C that this process has got,
// too. So a repeat of the first signal counts only if it has surely come a second or more after the
// first one was read. That is sure if a call of Take, a second or more after that, found no signal
// waiting. The kernel does not say when a signal came, and keeps one of each kind, so a signal that
// waits for a busy reader counts as the same request. Whoever waits for signals therefore calls
// Take several times a second.
//
// A person who presses the key again does mean more by it. So if two signals both come from the
// terminal's keys, each counts, unless a repeat by a program is still unread when the second one
// comes.
//
// The signals are blocked in the thread that made the object for as long as it lives, and are read
// as they come. Signals that are still unread when it is destroyed are consumed by the destructor,
// or left to their usual effect (LeaveUnread). Not thread-safe.

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
  // `now_ms` is the clock that measures that second; it must not go backwards. REQUIRES: the main
  // thread, and no other thread that leaves these signals unblocked
  explicit StopSignals(std::function<int64_t()> now_ms = MonotonicMs);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The next signal that has come and counts; 0 if there is none. Never blocks.
  int Take();
  // After this call the destructor leaves unread signals: as soon as they are no longer blocked
  // they do what they would have done without this object.
  void LeaveUnread() { leave_unread_ = true; }
  // The first signal that Take has returned; 0 if none.
  int first() const { return first_; }
  // Readable when Take has something to return.
  int fd() const { return fd_; }
  // The signals that were blocked before, which a child process should have.
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
