// The Launcher runs a job on this machine: every role as a process of its own, on Unix sockets.
//
// It starts all processes first and speaks gRPC only afterwards (fork and gRPC do not mix), and
// watches them until the run is over: by the coordinator's word (FINISHED, FAILED), by the end of
// any process, or by a signal to the launcher. Whatever the end, no process is left: they get
// SIGTERM, and SIGKILL if they do not go; and if the launcher itself is killed, the kernel kills
// them.
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT ask it to stop; of the last two, those that were ignored when
// it started stay ignored.
//
// Not thread-safe: everything is for the main thread, in which these signals and SIGCHLD are
// blocked for as long as the launcher lives.

#ifndef SATRAP_DEPLOY_LAUNCHER_LAUNCHER_H_
#define SATRAP_DEPLOY_LAUNCHER_LAUNCHER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "deploy/launcher/run_folder.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct RunEnd {
  enum Kind {
    FINISHED,
    STOPPED,  // because the caller of Wait said so
    FAILED,
    INTERRUPTED,
  };
  Kind kind = FAILED;
  // FAILED: what went wrong first, naming role, exit and log. INTERRUPTED: by which signal.
  std::string message;
  StatusAnswer last_status;  // the coordinator's last answer
  std::vector<std::string> warnings;
};

class Launcher {
 public:
  // Writes the job into the folder and starts all processes. `bin_dir` holds the programs, each as
  // ROLE/ROLE (embedding_ps/embedding_ps). On error nothing is left running.
  // REQUIRES: the main thread; no gRPC has been used in this process yet
  static absl::StatusOr<std::unique_ptr<Launcher>> Start(const JobConfig& job,
                                                         const RunFolder& folder,
                                                         const std::string& bin_dir);

  // Kills what still runs.
  ~Launcher();

  // Waits for the run's end and ends all processes. `on_status` gets the coordinator's status a few
  // times a second; the run ends, STOPPED, when it returns false. REQUIRES: once
  RunEnd Wait(absl::FunctionRef<bool(const StatusAnswer&)> on_status);

  // The signal that asked the launcher to stop too late, since the run was over when it came; empty
  // if there was none. REQUIRES: after Wait
  std::string LateSignal();

 private:
  struct Rep;
  explicit Launcher(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_LAUNCHER_H_
