#include "deploy/launcher/stop_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/check.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

constexpr int64_t kRepeatMs = 1000;

// While a signal is blocked it becomes pending even if it is ignored, so ignored ones stay out.
sigset_t SignalsToTake() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  for (const int signal : {SIGHUP, SIGQUIT}) {
    struct sigaction action;
    CHECK(sigaction(signal, nullptr, &action) == 0);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  return signals;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t signals = SignalsToTake();
  CHECK(sigprocmask(SIG_BLOCK, &signals, &before_) == 0);
  fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  CHECK(fd_ >= 0) << strerror(errno);
}

StopSignals::~StopSignals() {
  // What came while processes were being ended asked for no more than that.
  while (Read() != 0) continue;
  close(fd_);
  CHECK(sigprocmask(SIG_SETMASK, &before_, nullptr) == 0);
}

int StopSignals::Read() {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return 0;
  return static_cast<int>(info.ssi_signo);
}

int StopSignals::Take() {
  while (const int signal = Read()) {
    const int64_t now_ms = MonotonicMs();
    if (first_ == 0) {
      first_ = signal;
      first_ms_ = now_ms;
      return signal;
    }
    const bool is_repeat = signal == first_ && now_ms - first_ms_ < kRepeatMs;
    if (signal == SIGINT || !is_repeat) return signal;
  }
  return 0;
}

}  // namespace satrap
