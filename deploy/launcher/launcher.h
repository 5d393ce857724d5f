// The Launcher runs a job on this machine: every role as a process of its own, on Unix sockets.
//
// It starts all processes before it uses gRPC, because fork and gRPC do not mix, and watches them
// until the run is over: the coordinator says FINISHED or FAILED, a process exits, or the launcher
// gets a signal. In every case no process is left: they get SIGTERM, and SIGKILL if they do not
// exit. If the launcher itself is killed, the kernel kills them.
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT ask it to stop. SIGHUP and SIGQUIT stay ignored if they were
// ignored when it started.
//
// Not thread-safe: everything is for the main thread. These signals and SIGCHLD are blocked in it
// for as long as the launcher lives.

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
    STOPPED,  // `on_status` of Wait returned false
    FAILED,
    INTERRUPTED,
  };
  Kind kind = FAILED;
  // FAILED: the first cause, with role, exit code and log. INTERRUPTED: the signal's name.
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

  // Ends the processes that still run.
  ~Launcher();

  // Waits for the run's end and then ends all processes. `on_status` gets the coordinator's status
  // a few times a second; when it returns false the run ends as STOPPED. REQUIRES: called once
  RunEnd Wait(absl::FunctionRef<bool(const StatusAnswer&)> on_status);

  // The name of a signal that asked the launcher to stop when the run was already over; empty if
  // none came. REQUIRES: after Wait
  std::string LateSignal();

 private:
  struct Rep;
  explicit Launcher(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_LAUNCHER_H_
