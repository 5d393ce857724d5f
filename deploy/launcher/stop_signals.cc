#include "deploy/launcher/stop_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/check.h"

namespace satrap {
namespace {

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
  while (Take() != 0) continue;
  close(fd_);
  CHECK(sigprocmask(SIG_SETMASK, &before_, nullptr) == 0);
}

int StopSignals::Take() {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return 0;
  if (first_ == 0) first_ = static_cast<int>(info.ssi_signo);
  return static_cast<int>(info.ssi_signo);
}

}  // namespace satrap
