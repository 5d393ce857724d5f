#include "deploy/launcher/process/process_starter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/shortage.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"
#include "common/thread/clock.h"
#include "deploy/launcher/process/child_process.h"

namespace satrap {
namespace {

// A message is a packet of strings, each followed by a zero byte. The first string is its kind.
//
//   start LOG ARG...       -> started PID | refused CODE SHORTAGE TEXT
//   signal NUMBER PID...   -> sent
//   exit PID WAIT_STATUS      from the starter, not as an answer
constexpr char kStart[] = "start";
constexpr char kSignal[] = "signal";
constexpr char kStarted[] = "started";
constexpr char kRefused[] = "refused";
constexpr char kSent[] = "sent";
constexpr char kExit[] = "exit";

// The longest message. The command line of a role has only a few hundred bytes.
constexpr size_t kMaxMessageBytes = 65536;
constexpr int64_t kAnswerMs = 10000;

std::string Encode(const std::vector<std::string>& strings) {
  return absl::StrCat(absl::StrJoin(strings, absl::string_view("\0", 1)),
                      absl::string_view("\0", 1));
}

std::vector<std::string> Decode(const std::string& message) {
  std::vector<std::string> strings = absl::StrSplit(message, absl::string_view("\0", 1));
  strings.pop_back();
  return strings;
}

template <typename T>
T NumberOf(const std::string& text) {
  T number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

// The starter's work, until its launcher is gone. On an error it just exits, because nobody would
// read a message from it, and the launcher sees that the socket is closed.
class Starter {
 public:
  explicit Starter(int fd) : fd_(fd) {}

  [[noreturn]] void Serve() {
    sigset_t child_signal;
    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    // The launcher may have blocked the signal before the fork, but a test may not have.
    sigprocmask(SIG_BLOCK, &child_signal, nullptr);
    const int signals = signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) _exit(1);
    pollfd waited[] = {{fd_, POLLIN, 0}, {signals, POLLIN, 0}};
    while (true) {
      if (poll(waited, 2, -1) < 0 && errno != EINTR) _exit(1);
      signalfd_siginfo info;
      while (read(signals, &info, sizeof(info)) > 0) continue;
      TellExits();
      if (waited[0].revents != 0) AnswerOne();
    }
  }

 private:
  void Send(const std::vector<std::string>& strings) {
    const std::string message = Encode(strings);
    if (send(fd_, message.data(), message.size(), MSG_NOSIGNAL) < 0) _exit(1);
  }

  void TellExits() {
    for (size_t i = 0; i < children_.size();) {
      if (!children_[i].HasEnded()) {
        ++i;
        continue;
      }
      Send({kExit, absl::StrCat(children_[i].pid()), absl::StrCat(children_[i].wait_status())});
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void AnswerOne() {
    std::string message(kMaxMessageBytes, '\0');
    const ssize_t size = recv(fd_, message.data(), message.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) _exit(0);
    message.resize(static_cast<size_t>(size));
    const std::vector<std::string> request = Decode(message);
    if (request.size() >= 3 && request[0] == kStart) {
      auto child = ChildProcess::Start({request.begin() + 2, request.end()}, request[1]);
      if (!child.ok()) {
        return Send({kRefused, absl::StrCat(static_cast<int>(child.status().code())),
                     absl::StrCat(static_cast<int>(ShortageOf(child.status()))),
                     std::string(child.status().message())});
      }
      children_.push_back(*child);
      return Send({kStarted, absl::StrCat(child->pid())});
    }
    if (request.size() < 2 || request[0] != kSignal) _exit(1);
    // A child keeps its pid until it is reaped here, so the signal cannot hit another process.
    for (size_t i = 2; i < request.size(); ++i) {
      for (ChildProcess& child : children_) {
        if (child.pid() == NumberOf<pid_t>(request[i])) child.Signal(NumberOf<int>(request[1]));
      }
    }
    Send({kSent});
  }

  const int fd_;
  std::vector<ChildProcess> children_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessStarter>> ProcessStarter::Fork() {
  ASSIGN_OR_RETURN(const Forked starter, ForkOne());
  return std::unique_ptr<ProcessStarter>(new ProcessStarter(starter.fd, starter.pid));
}

absl::StatusOr<ProcessStarter::Forked> ProcessStarter::ForkOne() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return FileError("start", "the process that starts the others");
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const absl::Status status = FileError("start", "the process that starts the others");
    close(fds[0]);
    close(fds[1]);
    return status;
  }
  if (pid == 0) {
    close(fds[0]);
    // Give the starter a process group of its own, so that Ctrl-C on the terminal reaches only the
    // launcher.
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    Starter(fds[1]).Serve();
  }
  close(fds[1]);
  return Forked{fds[0], pid};
}

absl::Status ProcessStarter::Replace(int64_t timeout_ms) {
  kill(pid_, SIGKILL);
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  // If a file operation hangs in the kernel, even a killed process does not end.
  while (waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (MonotonicMs() >= deadline_ms) {
      return absl::DeadlineExceededError("the process that starts the others does not end");
    }
    poll(nullptr, 0, 10);
  }
  for (const pid_t pid : running_) {
    // The kernel has killed process `pid`, because its parent, the starter, ended. Another process
    // reaps `pid`.
    const int ended = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (ended < 0 && errno == ESRCH) continue;
    if (ended < 0) return FileError("watch", absl::StrCat("process ", pid));
    pollfd waited = {ended, POLLIN, 0};
    const int64_t left_ms = std::max<int64_t>(deadline_ms - MonotonicMs(), 0);
    const bool is_gone = poll(&waited, 1, static_cast<int>(left_ms)) == 1;
    close(ended);
    if (!is_gone) {
      return absl::DeadlineExceededError(absl::StrCat("process ", pid, " does not end"));
    }
  }
  ASSIGN_OR_RETURN(const Forked starter, ForkOne());
  close(std::exchange(fd_, starter.fd));
  pid_ = starter.pid;
  for (const pid_t pid : running_) exits_.push_back({pid, SIGKILL});
  running_.clear();
  return absl::OkStatus();
}

void ProcessStarter::TakeExit(const std::vector<std::string>& message) {
  exits_.push_back({NumberOf<pid_t>(message[1]), NumberOf<int>(message[2])});
  running_.erase(exits_.back().pid);
}

ProcessStarter::~ProcessStarter() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(fd_);
}

absl::Status ProcessStarter::Lost(const std::string& why) const {
  return absl::AbortedError(absl::StrCat("the process that starts the others (process ", pid_, ") ",
                                         why, ", and all others have ended with it"));
}

absl::StatusOr<std::string> ProcessStarter::Receive() {
  std::string message(kMaxMessageBytes, '\0');
  const ssize_t size = recv(fd_, message.data(), message.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::string();
  if (size <= 0) return Lost("has died");
  message.resize(static_cast<size_t>(size));
  return message;
}

absl::StatusOr<std::string> ProcessStarter::Ask(const std::string& request) {
  if (request.size() > kMaxMessageBytes) {
    return absl::InvalidArgumentError("a command line is too long to be passed on");
  }
  if (send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0) return Lost("has died");
  const int64_t deadline_ms = MonotonicMs() + kAnswerMs;
  while (true) {
    ASSIGN_OR_RETURN(const std::string message, Receive());
    if (message.empty()) {
      const int64_t left_ms = deadline_ms - MonotonicMs();
      if (left_ms <= 0) {
        kill(pid_, SIGKILL);
        return Lost("did not answer for 10 s and was killed");
      }
      pollfd waited = {fd_, POLLIN, 0};
      poll(&waited, 1, static_cast<int>(left_ms));
      continue;
    }
    const std::vector<std::string> strings = Decode(message);
    if (strings[0] != kExit) return message;
    TakeExit(strings);
  }
}

absl::StatusOr<pid_t> ProcessStarter::Start(const std::vector<std::string>& args,
                                            const std::string& log_path) {
  std::vector<std::string> request = {kStart, log_path};
  request.insert(request.end(), args.begin(), args.end());
  ASSIGN_OR_RETURN(const std::string answer, Ask(Encode(request)));
  const std::vector<std::string> strings = Decode(answer);
  if (strings[0] == kStarted) return *running_.insert(NumberOf<pid_t>(strings[1])).first;
  absl::Status refusal(static_cast<absl::StatusCode>(NumberOf<int>(strings[1])), strings[3]);
  return MarkShortage(std::move(refusal), static_cast<Shortage>(NumberOf<int>(strings[2])));
}

absl::Status ProcessStarter::Signal(const std::vector<pid_t>& pids, int signal) {
  std::vector<std::string> request = {kSignal, absl::StrCat(signal)};
  for (const pid_t pid : pids) request.push_back(absl::StrCat(pid));
  return Ask(Encode(request)).status();
}

absl::StatusOr<std::vector<ProcessStarter::Exit>> ProcessStarter::TakeExits() {
  while (true) {
    ASSIGN_OR_RETURN(const std::string message, Receive());
    if (message.empty()) return std::exchange(exits_, {});
    const std::vector<std::string> strings = Decode(message);
    if (strings[0] != kExit) return Lost("sent an answer that nobody asked for");
    TakeExit(strings);
  }
}

}  // namespace satrap
