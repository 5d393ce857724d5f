#include "deploy/cli/chaos/child_run.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/file/file_error.h"
#include "deploy/launcher/process/child_process.h"
#include "deploy/launcher/process/stop_signals.h"

namespace satrap {
namespace {

constexpr int kTickMs = 100;

[[noreturn]] void BecomeChild(absl::FunctionRef<int()> body, const StopSignals& signals,
                              pid_t parent) {
  close(signals.fd());
  // If the parent died before prctl, the kernel will never send the signal; getppid shows that.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
  // From here on a signal kills the child, until it launches its run, which handles signals itself.
  sigprocmask(SIG_SETMASK, &signals.before(), nullptr);
  _exit(body());
}

// If this process was started with SIGCHLD ignored, it would never learn how a child has ended.
class ChildrenCanBeReaped {
 public:
  ChildrenCanBeReaped() {
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &usual, &before_);
  }
  ~ChildrenCanBeReaped() { sigaction(SIGCHLD, &before_, nullptr); }

 private:
  struct sigaction before_ = {};
};

// Like waitpid, but tries again when a signal handler interrupts it.
bool Reap(pid_t child, int* status) {
  pid_t reaped;
  do {
    reaped = waitpid(child, status, 0);
  } while (reaped < 0 && errno == EINTR);
  return reaped == child;
}

}  // namespace

absl::Status RunInChild(absl::string_view name, absl::FunctionRef<int()> body) {
  const ChildrenCanBeReaped reaped;
  // Construct this before the fork. Otherwise a signal could end this process and leave its child
  // running.
  StopSignals signals;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return FileError("start", name);
  if (child == 0) BecomeChild(body, signals, parent);
  int status = 0;
  const int ended = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (ended < 0) {
    const absl::Status error = FileError("watch", name);
    kill(child, SIGKILL);
    Reap(child, &status);
    return error;
  }
  pollfd waited[] = {{ended, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  while (waited[0].revents == 0) {
    // Call Take in each tick, even if no signal has come. Take counts another signal as a second
    // request only if an earlier call has found no signal waiting; otherwise it treats the signal
    // as a repeat of the first one (stop_signals.h).
    poll(waited, 2, kTickMs);
    while (const int signal = signals.Take()) kill(child, signal);
  }
  close(ended);
  if (!Reap(child, &status)) return FileError("learn the end of", name);
  // A signal may have come since the child ended. Take it, too, because this command would
  // otherwise do more work although it must stop.
  signals.Take();
  if (signals.first() != 0) {
    const char* const signal = strsignal(signals.first());
    return absl::CancelledError(
        status == 0 ? absl::StrCat("stopped by ", signal, " after ", name, " had ended")
                    : absl::StrCat(name, " was stopped by ", signal));
  }
  // Nobody reads signals from here on, so restore their usual effect.
  signals.LeaveUnread();
  if (status == 0) return absl::OkStatus();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
    return absl::AbortedError(absl::StrCat(name, " has failed; its messages are above"));
  }
  return absl::AbortedError(absl::StrCat(name, " ", DescribeExit(status)));
}

}  // namespace satrap
