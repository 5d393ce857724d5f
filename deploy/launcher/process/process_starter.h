// A ProcessStarter starts programs from a process of its own, the starter.
//
// The launcher starts processes again and again while it uses gRPC, whose threads would leave locks
// in any state in a forked process. So the starter is forked before there are threads. It starts
// programs on request (child_process.h), reports how they end, and passes signals on. One message
// at a time goes over a socket pair: a request and its answer, or the end of a program.
//
// The starter dies with the launcher, and the programs with the starter: the kernel ensures both.
// After a starter has died, or has not answered within 10 s, every call returns that error until
// Replace.
//
// Not thread-safe; for the thread that forked it.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_PROCESS_STARTER_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_PROCESS_STARTER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace satrap {

class ProcessStarter {
 public:
  struct Exit {
    pid_t pid;
    int wait_status;  // waitpid's
  };

  // Forks the starter. Errors as FileError. REQUIRES: the main thread, and no other one
  static absl::StatusOr<std::unique_ptr<ProcessStarter>> Fork();
  // Kills the starter and every program that still runs.
  ~ProcessStarter();
  ProcessStarter(const ProcessStarter&) = delete;
  ProcessStarter& operator=(const ProcessStarter&) = delete;

  // Runs args[0] with `args`; stdout and stderr are appended to the file `log_path`. Errors as
  // ChildProcess::Start, with its marks of shortage; ABORTED if the starter is gone or silent.
  absl::StatusOr<pid_t> Start(const std::vector<std::string>& args, const std::string& log_path);
  // Sends a signal to each of `pids` that has not ended. ABORTED as Start.
  absl::Status Signal(const std::vector<pid_t>& pids, int signal);
  // The ends of programs that were not returned before, in order; empty if there are none. Never
  // blocks. ABORTED as Start.
  absl::StatusOr<std::vector<Exit>> TakeExits();
  // After ABORTED: forks another starter, once everything that the lost one had started is gone;
  // TakeExits then reports that signal 9 has ended it. DEADLINE_EXCEEDED if something is still
  // there after `timeout_ms`; else as Fork. The process may have threads by now. That is safe: of
  // what another thread may hold locked, the starter needs only the C library's heap, which handles
  // forks itself.
  absl::Status Replace(int64_t timeout_ms);
  // Readable when TakeExits has something to say.
  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }

 private:
  ProcessStarter(int fd, pid_t pid) : fd_(fd), pid_(pid) {}
  struct Forked {
    int fd;
    pid_t pid;
  };
  static absl::StatusOr<Forked> ForkOne();
  void TakeExit(const std::vector<std::string>& message);
  // Sends a request and waits for its answer; ends of programs that come before it are kept.
  absl::StatusOr<std::string> Ask(const std::string& request);
  // Receives one message, if there is one; empty if there is none.
  absl::StatusOr<std::string> Receive();
  // Why the starter cannot be used.
  absl::Status Lost(const std::string& why) const;

  int fd_;
  pid_t pid_;
  std::set<pid_t> running_;  // started, with no known end
  std::vector<Exit> exits_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_PROCESS_STARTER_H_
