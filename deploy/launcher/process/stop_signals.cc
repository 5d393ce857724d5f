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

// Leave out signals that are ignored: if they were blocked, they would become pending.
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
  // Drop signals that came while processes were being ended: they, too, asked for the end of the
  // processes.
  while (!leave_unread_ && Read().has_value()) continue;
  close(fd_);
  CHECK(sigprocmask(SIG_SETMASK, &before_, nullptr) == 0);
}

absl::optional<StopSignals::Received> StopSignals::Read() {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return absl::nullopt;
  Received received;
  received.signal = static_cast<int>(info.ssi_signo);
  // The signals of a terminal's keys come from the kernel. Leave out SIGHUP: the kernel sends it
  // when a terminal is closed, and to some processes twice.
  received.is_key =
      info.ssi_code == SI_KERNEL && (received.signal == SIGINT || received.signal == SIGQUIT);
  return received;
}

int StopSignals::Take() {
  while (true) {
    // Read the clock first: a signal that Read does not find has then come after `now_ms`, if at
    // all.
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
    // If the reader was busy, this may be a repeat that came long ago. Treating it as a second
    // request would cost the run its last cut.
    const bool may_be_same = next->signal == first_ && none_ms_ - first_ms_ < kRepeatMs;
    if (!may_be_same || (first_is_key_ && next->is_key)) return next->signal;
  }
}

}  // namespace satrap
