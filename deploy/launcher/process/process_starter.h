// A ProcessStarter starts programs from a separate process, the starter.
//
// The launcher must start processes at any time while it uses gRPC. But gRPC has threads, and these
// may hold locks during a fork, which the forked process would find locked for ever. So the starter
// is forked before there are threads. It starts programs on request (child_process.h), reports how
// they end, and passes signals on. It is connected to the launcher by a socket pair. One message at
// a time goes over it: a request, its answer, or the end of a program.
//
// If the launcher dies, so does the starter, and if the starter dies, so do its programs: the
// kernel ensures both. After the starter has died, or has not answered within 10 s, every call
// returns ABORTED until Replace is called.
//
// Not thread-safe: only the thread that forked the starter may use it.

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

  // Forks the starter. Errors are those of FileError. REQUIRES: called on the main thread, and no
  // other thread exists
  static absl::StatusOr<std::unique_ptr<ProcessStarter>> Fork();
  // Kills the starter and every program that still runs.
  ~ProcessStarter();
  ProcessStarter(const ProcessStarter&) = delete;
  ProcessStarter& operator=(const ProcessStarter&) = delete;

  // Runs args[0] with `args`; stdout and stderr are appended to the file `log_path`. Returns
  // the errors of ChildProcess::Start; if the machine lacked memory, processes or descriptors, the
  // error is still marked as such (common/base/shortage.h). ABORTED if the starter is gone or does
  // not answer.
  absl::StatusOr<pid_t> Start(const std::vector<std::string>& args, const std::string& log_path);
  // Sends `signal` to each of `pids` that has not ended. ABORTED under the same conditions as
  // Start.
  absl::Status Signal(const std::vector<pid_t>& pids, int signal);
  // The ends of programs that no earlier call has returned, in order; empty if there are none.
  // Never blocks. ABORTED under the same conditions as Start.
  absl::StatusOr<std::vector<Exit>> TakeExits();
  // Call after ABORTED. Waits until the lost starter and everything that it had started are gone,
  // and forks another starter. TakeExits then reports for each of these programs that signal 9
  // ended it. DEADLINE_EXCEEDED if one of the processes still exists after `timeout_ms`; other
  // errors are those of Fork. This process may have threads by now, which is safe: of all that
  // another thread may have locked, the starter needs only the C library's heap, which handles
  // forks itself.
  absl::Status Replace(int64_t timeout_ms);
  // Readable when TakeExits has something to return.
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
  // Sends a request and waits for its answer. Keeps messages about ended programs that arrive
  // first.
  absl::StatusOr<std::string> Ask(const std::string& request);
  // Receives one message, if there is one; empty if there is none.
  absl::StatusOr<std::string> Receive();
  // The error to return if the starter cannot be used because of `why`.
  absl::Status Lost(const std::string& why) const;

  int fd_;
  pid_t pid_;
  std::set<pid_t> running_;  // started, with no known end
  std::vector<Exit> exits_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_PROCESS_STARTER_H_
