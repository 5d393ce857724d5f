#include "deploy/launcher/process/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

// Runs in the child between fork and exec, so it makes only async-signal-safe calls. On failure it
// writes errno to `report`; on success exec closes that descriptor.
[[noreturn]] void BecomeProgram(char* const argv[], int log, int inherited, int report,
                                pid_t parent) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  // If the parent died before prctl, the kernel will never send the signal; getppid shows that.
  const bool bound = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
  const int input = open("/dev/null", O_RDONLY);
  if (inherited >= 0) fcntl(inherited, F_SETFD, 0);
  if (bound && input >= 0 && dup2(input, 0) == 0 && dup2(log, 1) == 1 && dup2(log, 2) == 2) {
    execv(argv[0], argv);
  }
  const int error = errno;
  if (write(report, &error, sizeof(error)) < 0) _exit(127);
  _exit(127);
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& args,
                                                 const std::string& log_path) {
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return FileError("write log", log_path);
  absl::StatusOr<ChildProcess> child = Start(args, log);
  close(log);
  return child;
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& args, int output,
                                                 int inherited) {
  std::vector<char*> argv;
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return FileError("start", args[0]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) BecomeProgram(argv.data(), output, inherited, report[1], parent);
  const int fork_error = errno;
  close(report[1]);
  int error = 0;
  // Blocks until exec closes the pipe's other end (end of file) or the child reports its errno.
  const bool failed = pid < 0 || read(report[0], &error, sizeof(error)) == sizeof(error);
  close(report[0]);
  if (!failed) return ChildProcess(pid);
  if (pid > 0) waitpid(pid, nullptr, 0);
  return FileError("start", args[0], pid < 0 ? fork_error : error);
}

bool ChildProcess::HasEnded() {
  if (wait_status_.has_value()) return true;
  int status;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  wait_status_ = status;
  return true;
}

void ChildProcess::Signal(int signal) {
  if (!HasEnded()) kill(pid_, signal);
}

std::string DescribeExit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("was killed by signal ", signal, " (", strsignal(signal), ")");
  }
  return absl::StrCat("exited with code ", WEXITSTATUS(wait_status));
}

std::string LastErrorOf(const std::string& log_path, size_t max_bytes) {
  std::ifstream file(log_path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const auto size = static_cast<size_t>(file.tellg());
  const size_t take = std::min(size, max_bytes);
  std::string tail(take, '\0');
  file.seekg(static_cast<std::streamoff>(size - take));
  file.read(tail.data(), static_cast<std::streamsize>(take));
  return LastErrorIn(tail);
}

std::string LastErrorIn(absl::string_view log) {
  std::string last;
  std::string last_error;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    if (absl::StartsWith(line, kGenerationLine)) {
      last.clear();
      last_error.clear();
      continue;
    }
    last = std::string(line);
    // Matches a line of Logger::Error, an error printed before there is a logger, and a failed
    // CHECK.
    if (absl::StrContains(line, " error ") || absl::StartsWith(line, "error: ") ||
        absl::StrContains(line, "CHECK")) {
      last_error = std::string(line);
    }
  }
  return last_error.empty() ? last : last_error;
}

}  // namespace satrap
