#include "deploy/cli/child_run.h"

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
#include "deploy/launcher/child_process.h"
#include "deploy/launcher/stop_signals.h"

namespace satrap {
namespace {

[[noreturn]] void BecomeChild(absl::FunctionRef<int()> body, const StopSignals& signals,
                              pid_t parent) {
  close(signals.fd());
  // If the parent died before prctl, the kernel will never send the signal: getppid tells.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
  // Signals end the child until it launches its run, which takes care of them from then on.
  sigprocmask(SIG_SETMASK, &signals.before(), nullptr);
  _exit(body());
}

}  // namespace

absl::Status RunInChild(absl::FunctionRef<int()> body) {
  // Before the child is there, so that no signal can end this process alone.
  StopSignals signals;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return FileError("start", "a process");
  if (child == 0) BecomeChild(body, signals, parent);
  const int ended = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (ended < 0) {
    const absl::Status status = FileError("watch", absl::StrCat("process ", child));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return status;
  }
  pollfd waited[] = {{ended, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  while (waited[0].revents == 0) {
    if (poll(waited, 2, -1) < 0) continue;
    while (const int signal = signals.Take()) kill(child, signal);
  }
  close(ended);
  int status = 0;
  waitpid(child, &status, 0);
  // Also one that has come since the child's end: the command has more to do, and must not.
  signals.Take();
  if (signals.first() != 0) {
    return absl::CancelledError(absl::StrCat("stopped by ", strsignal(signals.first())));
  }
  return status == 0 ? absl::OkStatus() : absl::AbortedError(DescribeExit(status));
}

}  // namespace satrap
