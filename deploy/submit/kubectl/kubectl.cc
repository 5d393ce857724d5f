#include "deploy/submit/kubectl/kubectl.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/json/json.h"
#include "common/thread/clock.h"

extern char** environ;

namespace satrap {
namespace {

constexpr int64_t kLimitMs = 60000;
// The limit of a call in which a user may have to log in.
constexpr int64_t kLoginMs = 300000;
// How often to check whether the program has ended.
constexpr int64_t kLookMs = 500;
// The limit of one request to the server. A call may make several requests.
constexpr char kRequestTimeout[] = "--request-timeout=20s";
// After this time, the program's stderr is shown as it is written.
constexpr int64_t kSlowMs = 3000;
// How many lines of the program's stderr an error has.
constexpr size_t kMostLines = 8;

// One end of a pipe, which the destructor closes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~Descriptor() { Close(); }
  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor from;  // to read
  Descriptor to;    // to write
};

Pipe MakePipe() {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0) << std::strerror(errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

sigset_t SignalsOfStream() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&signals, signal);
  return signals;
}

// Starts `command` with these descriptors as 0, 1 and 2; -1 stands for this process's own. If
// `in_group`, the child has a process group of its own, which Ctrl-C does not reach. Returns 0 or
// an errno.
int Spawn(const std::vector<std::string>& command, const int (&descriptors)[3], bool in_group,
          pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i) {
    if (descriptors[i] >= 0) posix_spawn_file_actions_adddup2(&actions, descriptors[i], i);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  int16_t options = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (in_group) options |= POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&attributes, options);
  sigset_t set;
  sigemptyset(&set);
  posix_spawnattr_setsigmask(&attributes, &set);
  // This program ignores these signals (IgnoreSignalsOfWrites), but the child must not.
  sigaddset(&set, SIGPIPE);
  sigaddset(&set, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &set);
  std::vector<char*> argv;
  for (const std::string& arg : command) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  const int error = posix_spawnp(pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Whether the line is a record of kubectl's own log, "E1127 04:10:36.010199 ...", and not a
// message.
bool IsLogLine(absl::string_view line) {
  return line.size() > 5 && absl::ascii_isupper(line[0]) && line[5] == ' ' &&
         std::all_of(line.begin() + 1, line.begin() + 5, absl::ascii_isdigit);
}

// The last lines of `errors`, which say why the program has failed.
std::string SaidIn(const std::string& errors) {
  std::vector<absl::string_view> lines;
  for (const absl::string_view line : absl::StrSplit(errors, '\n')) {
    if (!absl::StripAsciiWhitespace(line).empty() && !IsLogLine(line)) {
      lines.push_back(absl::StripTrailingAsciiWhitespace(line));
    }
  }
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
  return absl::StrJoin(lines, "; ");
}

// Writes to stderr.
void Show(absl::string_view text) {
  fwrite(text.data(), 1, text.size(), stderr);
  fflush(stderr);
}

// Whether the child has ended. Does not reap it.
bool HasExited(pid_t pid) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

// What is exchanged with a child: its stdin, and what it prints.
struct Streams {
  Pipe in;
  Pipe out;
  Pipe err;
  std::string printed;
  std::string errors;

  // Writes some of `input`, removes from it what is written, and reads what the child has printed.
  // Waits at most `timeout_ms` until one of these is possible. Returns whether one was.
  bool Exchange(absl::string_view* input, int64_t timeout_ms) {
    if (input->empty()) in.to.Close();
    // poll skips a descriptor of -1.
    pollfd waited[] = {
        {in.to.fd(), POLLOUT, 0}, {out.from.fd(), POLLIN, 0}, {err.from.fd(), POLLIN, 0}};
    if (poll(waited, 3, static_cast<int>(timeout_ms)) <= 0) return false;
    if (waited[0].revents != 0) {
      const ssize_t written = write(in.to.fd(), input->data(), input->size());
      if (written > 0) input->remove_prefix(static_cast<size_t>(written));
      // The child has closed its stdin, so it does not need the rest.
      if (written < 0 && errno != EAGAIN && errno != EINTR) in.to.Close();
    }
    if (waited[1].revents != 0) ReadInto(&printed, &out.from);
    if (waited[2].revents != 0) ReadInto(&errors, &err.from);
    return true;
  }
  bool is_open() const { return out.from.fd() >= 0 || err.from.fd() >= 0; }

 private:
  static void ReadInto(std::string* text, Descriptor* from) {
    char buffer[16384];
    const ssize_t got = read(from->fd(), buffer, sizeof(buffer));
    if (got > 0) {
      text->append(buffer, static_cast<size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      from->Close();
    }
  }
};

// Writes `input` to the child and reads what it prints, until it has closed both pipes or has
// ended. Returns false if the time is over before that.
bool ExchangeAll(pid_t pid, absl::string_view input, Streams* streams) {
  const int64_t start_ms = MonotonicMs();
  size_t shown = 0;  // bytes of `errors`
  fcntl(streams->in.to.fd(), F_SETFL, O_NONBLOCK);
  while (streams->is_open()) {
    const int64_t lasts_ms = MonotonicMs() - start_ms;
    const bool waits_for_user = !streams->errors.empty() && isatty(STDIN_FILENO) != 0;
    if (lasts_ms >= (waits_for_user ? kLoginMs : kLimitMs)) return false;
    if (lasts_ms >= kSlowMs) {
      Show(absl::string_view(streams->errors).substr(shown));
      shown = streams->errors.size();
    }
    // A program that the child has started, such as a plugin for logins, may keep a pipe open after
    // the child has ended.
    const bool has_exited = HasExited(pid);
    if (!streams->Exchange(&input, has_exited ? 0 : kLookMs) && has_exited) return true;
  }
  return true;
}

int Reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::vector<std::string> Kubectl::CommandOf(std::vector<std::string> args) const {
  std::vector<std::string> command = {program_};
  if (!space_.empty()) command.push_back(absl::StrCat("--namespace=", space_));
  for (std::string& arg : args) command.push_back(std::move(arg));
  return command;
}

absl::Status Kubectl::NotStarted(int error) const {
  if (error != ENOENT) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot start ", program_, ": ", std::strerror(error)));
  }
  return absl::NotFoundError(
      absl::StrCat("there is no ", program_,
                   " on the PATH: install it, and check by `kubectl get pods` that it reaches the "
                   "cluster"));
}

absl::StatusOr<std::string> Kubectl::Run(std::vector<std::string> args, absl::string_view input) {
  const std::string what = absl::StrCat("kubectl ", args[0]);
  // Put it before the command, because what follows `--` is for a program in a pod.
  args.insert(args.begin(), kRequestTimeout);
  Streams streams = {MakePipe(), MakePipe(), MakePipe(), "", ""};
  pid_t pid = 0;
  // Without `input`, the program has this process's stdin, so that a user can log in.
  const int descriptors[3] = {input.empty() ? -1 : streams.in.from.fd(), streams.out.to.fd(),
                              streams.err.to.fd()};
  const int error = Spawn(CommandOf(std::move(args)), descriptors, /*in_group=*/false, &pid);
  if (error != 0) return NotStarted(error);
  for (Descriptor* end : {&streams.in.from, &streams.out.to, &streams.err.to}) end->Close();
  if (!ExchangeAll(pid, input, &streams)) {
    kill(pid, SIGKILL);
    Reap(pid);
    return absl::DeadlineExceededError(absl::StrCat(what, " has not ended within ", kLimitMs / 1000,
                                                    " s: ", SaidIn(streams.errors)));
  }
  const int status = Reap(pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return streams.printed;
  const std::string said = SaidIn(streams.errors);
  return absl::FailedPreconditionError(
      absl::StrCat(what, " has failed", said.empty() ? " without a message" : ": ", said));
}

absl::Status Kubectl::Ask(std::vector<std::string> args, google::protobuf::Message* answer,
                          absl::string_view input) {
  const std::string what = absl::StrCat("kubectl ", args[0]);
  args.emplace_back("--output=json");
  ASSIGN_OR_RETURN(const std::string printed, Run(std::move(args), input));
  answer->Clear();
  if (absl::StripAsciiWhitespace(printed).empty()) return absl::OkStatus();
  const absl::Status status = ParseJson(printed, answer);
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("the output of ", what, " cannot be parsed: ", status.message()));
}

absl::StatusOr<Streamed> Kubectl::Stream(std::vector<std::string> args,
                                         const std::function<void(absl::string_view line)>& show) {
  Pipe out = MakePipe();
  pid_t pid = 0;
  const int descriptors[3] = {-1, out.to.fd(), -1};
  const int error = Spawn(CommandOf(std::move(args)), descriptors, /*in_group=*/true, &pid);
  if (error != 0) return NotStarted(error);
  out.to.Close();
  const sigset_t signals = SignalsOfStream();
  const Descriptor signal_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  CHECK(signal_fd.fd() >= 0) << std::strerror(errno);
  Streamed streamed;
  std::string text;  // of which no whole line is there yet
  while (out.from.fd() >= 0) {
    pollfd waited[] = {{out.from.fd(), POLLIN, 0}, {signal_fd.fd(), POLLIN, 0}};
    const bool has_exited = HasExited(pid);
    if (poll(waited, 2, has_exited ? 0 : static_cast<int>(kLookMs)) <= 0) {
      if (has_exited) break;
      continue;
    }
    signalfd_siginfo info;
    while (streamed.signal == 0 && read(signal_fd.fd(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGCHLD) streamed.signal = static_cast<int>(info.ssi_signo);
    }
    if (streamed.signal != 0) break;
    if (waited[0].revents == 0) continue;
    char buffer[16384];
    const ssize_t got = read(out.from.fd(), buffer, sizeof(buffer));
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      show(absl::string_view(text).substr(0, end + 1));
      text.erase(0, end + 1);
    }
    if (got == 0 || (got < 0 && errno != EINTR)) out.from.Close();
  }
  if (!text.empty()) show(text);
  if (streamed.signal != 0) kill(pid, SIGTERM);
  const int status = Reap(pid);
  streamed.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return streamed;
}

absl::Status Kubectl::Become(std::vector<std::string> args) {
  const std::vector<std::string> command = CommandOf(std::move(args));
  std::vector<char*> argv;
  for (const std::string& arg : command) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  execvp(argv[0], argv.data());
  return NotStarted(errno);
}

void BlockSignalsOfStream() {
  const sigset_t signals = SignalsOfStream();
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
}

int WaitForSignal(int64_t timeout_ms) {
  sigset_t signals = SignalsOfStream();
  sigdelset(&signals, SIGCHLD);
  const timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};
  return std::max(sigtimedwait(&signals, nullptr, &timeout), 0);
}

}  // namespace satrap
