#include "deploy/launcher/process/stop_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace satrap {
namespace {

constexpr int64_t kRepeatMs = 1000;

// A blocked signal becomes pending even if it is ignored, so leave ignored ones out.
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

StopSignals::StopSignals(std::function<int64_t()> now_ms) : now_ms_(std::move(now_ms)) {
  const sigset_t signals = SignalsToTake();
  CHECK(sigprocmask(SIG_BLOCK, &signals, &before_) == 0);
  fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  CHECK(fd_ >= 0) << strerror(errno);
}

StopSignals::~StopSignals() {
  // Signals that came while processes were being ended asked for no more than that.
  while (!leave_unread_ && Read().has_value()) continue;
  close(fd_);
  CHECK(sigprocmask(SIG_SETMASK, &before_, nullptr) == 0);
}

absl::optional<StopSignals::Received> StopSignals::Read() {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return absl::nullopt;
  Received received;
  received.signal = static_cast<int>(info.ssi_signo);
  // The kernel itself sends the signals of keys. It also sends SIGHUP when a terminal is closed, to
  // some processes twice.
  received.is_key =
      info.ssi_code == SI_KERNEL && (received.signal == SIGINT || received.signal == SIGQUIT);
  return received;
}

int StopSignals::Take() {
  while (true) {
    // The clock is read first: a signal that is not there yet then comes after this moment.
    const int64_t now_ms = now_ms_();
    const absl::optional<Received> next = Read();
    if (!next.has_value()) {
      none_ms_ = now_ms;
      return 0;
    }
    if (first_ == 0) {
      first_ = next->signal;
      first_ms_ = now_ms;
      first_is_key_ = next->is_key;
      return first_;
    }
    // A reader that was busy may see a repeat long after it came: treating it as a second request
    // would cost the run its last cut.
    const bool may_be_same = next->signal == first_ && none_ms_ - first_ms_ < kRepeatMs;
    if (!may_be_same || (first_is_key_ && next->is_key)) return next->signal;
  }
}

}  // namespace satrap
