#include "deploy/pod/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/file/file_error.h"
#include "common/refusal/refusal.h"
#include "common/role/cause_table.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"
#include "deploy/launcher/process/child_process.h"
#include "deploy/launcher/process/generation_cause.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/launcher/process/submission_end.h"
#include "deploy/pod/life_watch.h"
#include "deploy/pod/memory_kills.h"

namespace satrap {
namespace {

// How long to wait until the last lines of a role are in the log.
constexpr int64_t kDrainMs = 1000;
// Kubernetes shows at most this much of a container's message.
constexpr size_t kMostMessageBytes = 4096;
constexpr int kSignalExit = 128;
constexpr int kNotStarted = 127 << 8;  // the status of a shell that finds no program

std::string Seconds(int64_t ms) {
  return absl::StrFormat("%.1f s", static_cast<double>(ms) / 1000);
}

sigset_t SupervisorSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  return signals;
}

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, RoleLog* log)
      : options_(options),
        name_(MemberName(options.role, options.index)),
        log_(log),
        memory_kills_(options.proc_folder),
        coordinator_restarts_(options.max_restarts) {
    const sigset_t signals = SupervisorSignals();
    signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    CHECK(signal_fd_ >= 0) << std::strerror(errno);
    // Adopt orphans even if this is not process 1, as in a pod whose containers share processes.
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0) << std::strerror(errno);
  }
  ~Supervisor() { close(signal_fd_); }

  int Run() {
    for (int start = 1;; ++start) {
      const RoleEnd end = RunRole(start);
      if (asked_ != 0) {
        Leave(absl::StrCat(end.ending.text(), " after ", strsignal(asked_)));
        return kSignalExit + asked_;
      }
      Await(PauseAfter(end));
      if (asked_ != 0) return kSignalExit + asked_;
    }
  }

 private:
  RoleEnd RunRole(int start) {
    log_->Say(absl::StrCat("---- start ", start, " of ", name_, " ----"));
    log_->Drain(kDrainMs);
    log_->BeginRole();
    // Remove the ending that the previous process left. If the new process were killed, it would
    // leave none, and the old ending would be mistaken for that of the new process.
    std::error_code error;
    std::filesystem::remove(options_.ending_path, error);
    if (options_.role == COORDINATOR) RemoveRefusal(options_.run_dir, options_.submission);
    std::vector<std::string> command = options_.command;
    command.insert(command.end(), more_flags_.begin(), more_flags_.end());
    // Each start has its own pipe, so that nothing that is left of the previous process can give
    // signs of life for this one.
    int life[2];
    if (pipe2(life, O_CLOEXEC | O_NONBLOCK) != 0) return NotStarted(FileError("start", command[0]));
    command.push_back(absl::StrCat("--alive=", life[1]));
    const int64_t kills_before = memory_kills_.Count();
    const int64_t started_ms = MonotonicMs();
    const absl::StatusOr<ChildProcess> child =
        ChildProcess::Start(command, log_->input(), /*inherited=*/life[1]);
    close(life[1]);
    if (!child.ok()) {
      close(life[0]);
      return NotStarted(child.status());
    }
    const pid_t pid = child->pid();
    pid_ = pid;
    wait_status_.reset();
    const absl::optional<int64_t> silent_ms = AwaitEnd(life[0], started_ms);
    close(life[0]);
    pid_ = 0;
    log_->Drain(kDrainMs);
    RoleEnd end = EndOf(options_.role, options_.index, *wait_status_, options_.ending_path,
                        MonotonicMs() - started_ms, HowItEnded(silent_ms, kills_before));
    end.pid = pid;
    return end;
  }

  RoleEnd NotStarted(const absl::Status& error) const {
    RoleEnd end;
    end.wait_status = kNotStarted;
    end.ending = FailureOf(options_.role, options_.index, error);
    end.ending.set_before_ready(true);
    end.has_left = true;
    return end;
  }

  // Waits until the role has ended. If the role gives no sign of life, kills it, and returns for
  // how long it had given none. `life` is the read end of the role's pipe.
  absl::optional<int64_t> AwaitEnd(int life, int64_t started_ms) {
    LifeWatch watch(options_.life, started_ms);
    absl::optional<int64_t> silent_ms;
    while (!wait_status_.has_value()) {
      TakeSignals(LifeWatch::kTickMs);
      watch.OnWake(MonotonicMs());
      char signs[256];
      while (read(life, signs, sizeof(signs)) > 0) watch.OnSign();
      if (wait_status_.has_value() || silent_ms.has_value() || !watch.IsSilent()) continue;
      silent_ms = watch.LimitMs();
      log_->Say(absl::StrCat(name_, " has given no sign of life for ", Seconds(*silent_ms),
                             ", so it is killed"));
      kill(pid_, SIGKILL);
    }
    return silent_ms;
  }

  // What is known of a SIGKILL beyond the status; empty if there is nothing to add.
  std::string HowItEnded(absl::optional<int64_t> silent_ms, int64_t kills_before) const {
    if (!WIFSIGNALED(*wait_status_) || WTERMSIG(*wait_status_) != SIGKILL) return "";
    if (silent_ms.has_value()) {
      return absl::StrCat("gave no sign of life for ", Seconds(*silent_ms), " and was killed");
    }
    if (memory_kills_.Count() == kills_before) return "";
    const absl::optional<int64_t> limit = memory_kills_.LimitBytes();
    return absl::StrCat(DescribeExit(*wait_status_), " because the container's memory was used up",
                        limit.has_value() ? absl::StrCat(" (limit: ", *limit, " bytes)") : "");
  }

  // Waits for `pause_ms`, but only until a signal asks for the end.
  void Await(int64_t pause_ms) {
    const int64_t until_ms = MonotonicMs() + pause_ms;
    while (asked_ == 0) {
      const int64_t left_ms = until_ms - MonotonicMs();
      if (left_ms <= 0) return;
      TakeSignals(left_ms);
    }
  }

  void TakeSignals(int64_t timeout_ms) {
    pollfd waited = {signal_fd_, POLLIN, 0};
    poll(&waited, 1, static_cast<int>(timeout_ms));
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      if (asked_ == 0) asked_ = signal;
      log_->Say(absl::StrCat(name_, " gets signal ", signal, " (", strsignal(signal), ")"));
      // The role has not been reaped yet, so the pid is still its own.
      if (pid_ > 0) kill(pid_, signal);
    }
    // One SIGCHLD may report several ends.
    int status = 0;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
      if (pid != pid_) continue;
      wait_status_ = status;
      pid_ = 0;
    }
  }

  // Logs what has happened. Returns the pause before the next start.
  int64_t PauseAfter(const RoleEnd& end) {
    std::string text = end.ending.text();
    if (end.has_left && end.wait_status != kNotStarted) {
      text = absl::StrCat(name_, " ", end.how, ": ", text);
    }
    const int64_t pause_of_rule_ms =
        options_.role == COORDINATOR ? PauseOfCoordinator(end) : PauseOfRole(end);
    const int64_t pause_ms = std::max(pause_of_rule_ms, options_.least_pause_ms);
    // A process cannot log its own SIGKILL, so its last line is unrelated.
    const bool killed = WIFSIGNALED(end.wait_status) && WTERMSIG(end.wait_status) == SIGKILL;
    const std::string last = killed || end.has_left ? "" : log_->LastError();
    const std::string says = last.empty() ? "" : absl::StrCat("\nit says: ", last);
    const std::string when = pause_ms == 0 ? "" : absl::StrCat(" in ", Seconds(pause_ms));
    Leave(absl::StrCat(text, "; it will be started again", when, says));
    return pause_ms;
  }

  int64_t PauseOfRole(const RoleEnd& end) {
    more_flags_.clear();
    if (end.pid != 0) AddFlagsOf(ToldByTheNext(options_.role, options_.index, end), &more_flags_);
    return role_restarts_.PauseMs(end);
  }

  int64_t PauseOfCoordinator(const RoleEnd& end) {
    // If the log cannot be read now, assume that there is no new cut.
    const auto progress = ReadRunProgress(options_.run_dir);
    if (progress.ok() && progress->cut.has_value()) cut_ = progress->cut->cut();
    LeaveIfRefused(end);
    more_flags_.clear();
    if (end.wait_status != 0) AddFlagsOf(end.ending, &more_flags_);
    return coordinator_restarts_.PauseMs(end, cut_);
  }

  void LeaveIfRefused(const RoleEnd& end) {
    const bool refuses = WIFEXITED(end.wait_status) &&
                         WEXITSTATUS(end.wait_status) == kExitFailed && end.has_left &&
                         NoRestartCures(end.ending, Ending());
    // One refusal may be due to storage that was not back yet after an outage.
    if (refuses && has_refused_ &&
        !EndOfSubmission(options_.run_dir, options_.submission).has_value()) {
      LeaveRefusal(options_.run_dir, options_.submission, end.ending);
    }
    has_refused_ = refuses;
  }

  // Adds the text to the log, and writes it as the container's termination message.
  void Leave(const std::string& text) {
    log_->Say(text);
    log_->Drain(kDrainMs);
    if (options_.termination_log.empty()) return;
    const int fd =
        open(options_.termination_log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const std::string message = text.substr(0, kMostMessageBytes);
    const bool written = fd >= 0 && write(fd, message.data(), message.size()) ==
                                        static_cast<ssize_t>(message.size());
    if (!written) {
      log_->Say(absl::StrCat("cannot write ", options_.termination_log, ": ",
                             std::generic_category().message(errno)));
    }
    if (fd >= 0) close(fd);
  }

  const SupervisorOptions options_;
  const std::string name_;
  RoleLog* const log_;
  const MemoryKills memory_kills_;
  int signal_fd_ = -1;
  pid_t pid_ = 0;  // the pid of the running role; 0: none runs
  absl::optional<int> wait_status_;
  int asked_ = 0;  // the first signal that asked for the end
  RoleRestarts role_restarts_;
  CoordinatorRestarts coordinator_restarts_;
  std::string cut_;
  bool has_refused_ = false;  // the coordinator has refused to begin when it ended last
  std::vector<std::string> more_flags_;
};

}  // namespace

void BlockSupervisorSignals() {
  const sigset_t signals = SupervisorSignals();
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  // If nobody reads stdout any more, its lines are lost, but the supervisor continues.
  signal(SIGPIPE, SIG_IGN);
}

int Supervise(const SupervisorOptions& options, RoleLog* log) {
  BlockSupervisorSignals();
  const int code = Supervisor(options, log).Run();
  log->Drain(kDrainMs);
  return code;
}

}  // namespace satrap
