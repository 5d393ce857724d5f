// A ChildProcess is one program that this process has started. The launcher starts its programs
// through a ProcessStarter (process_starter.h).
//
// The child dies with its parent, however the parent ends: the kernel kills the child when the
// thread that started it is gone (PR_SET_PDEATHSIG). So the parent's main thread must start it. The
// child has a process group of its own, so that Ctrl-C on the terminal reaches only the launcher,
// which then stops the other processes in order. Not thread-safe.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_CHILD_PROCESS_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace satrap {

class ChildProcess {
 public:
  // Runs args[0] with `args`; stdout and stderr go to the file `log_path`, stdin is empty. Errors
  // are those of FileError (common/file/file_error.h), naming the log or the program that cannot be
  // started. REQUIRES: the main thread; no gRPC has been used in this process yet
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& args,
                                            const std::string& log_path);
  // As above, but stdout and stderr go to the descriptor `output`, which the caller keeps. The
  // child inherits the descriptor `inherited` under the same number, even if exec would close it;
  // -1: none.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& args, int output,
                                            int inherited = -1);

  pid_t pid() const { return pid_; }
  // Whether the process has ended; if so, wait_status() says how. Never blocks.
  bool HasEnded();
  // waitpid's status. REQUIRES: HasEnded()
  int wait_status() const { return *wait_status_; }
  void Signal(int signal);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  absl::optional<int> wait_status_;
};

// The start of the line that begins a generation in a log; the generation's number follows.
inline constexpr char kGenerationLine[] = "---- generation ";

// "exited with code 1", "was killed by signal 9 (Killed)".
std::string DescribeExit(int wait_status);

// The line of a log that most likely says why the process ended: the last error in it, or else its
// last line; empty if there is none. Lines of earlier generations do not count. Reads at most the
// last `max_bytes` of the log.
std::string LastErrorOf(const std::string& log_path, size_t max_bytes = 65536);
// Like LastErrorOf, for the text of a log.
std::string LastErrorIn(absl::string_view log);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_CHILD_PROCESS_H_
