// The Launcher runs a job on this machine from its first generation to its end. Each role is a
// process of its own; they communicate over Unix sockets.
//
// A generation ends when one of its processes ends, when the coordinator says RESTARTING, or when
// the coordinator is silent. Then the launcher kills all processes of the generation at once and
// starts the next one. The job in the newest GENERATION entry of the run's log says how many
// processes of each role the next generation has. Before it starts the next generation, the
// launcher pauses (restart_count.h); during a pause it accepts a wish to stop (pause_server.h). The
// run ends when
//   - there were `max_restarts` restarts without a cut between them,
//   - two generations in a row ended before they were ready, for a reason that no restart cures,
//   - the coordinator says FINISHED, FAILED or STOPPED, or
//   - a coordinator cannot begin (exit code 1).
// In every case no process is left. If the launcher itself is killed, the kernel kills the
// processes.
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT ask the launcher to stop. The first signal makes a training
// take a last cut, within `stop_seconds` (stop_request.h); the second ends all processes at once.
// If the run takes no cuts, or its generation has not begun, the first signal ends it. SIGHUP and
// SIGQUIT stay ignored if they were ignored when the launcher started.
//
// If the disk is full and the launcher cannot write a log, or the job's file for people, the run
// continues.
//
// Not thread-safe: only the main thread may use it. These signals are blocked in that thread as
// long as the launcher lives.

#ifndef SATRAP_DEPLOY_LAUNCHER_LAUNCHER_H_
#define SATRAP_DEPLOY_LAUNCHER_LAUNCHER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/launcher/process/run_folder.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct LaunchOptions {
  // Whether the job given to Start, and not the job in the log, is the job of the run's next
  // generation.
  bool next_job = false;
  // The cut that the next generation begins from, in the form of the coordinator's --from. Empty:
  // the newest.
  std::string from_cut;
};

struct RunEnd {
  enum Kind {
    FINISHED,
    STOPPED,    // as `satrap stop` asked, after a last cut
    DISMISSED,  // `on_status` of Wait returned false
    FAILED,
    INTERRUPTED,
  };
  Kind kind = FAILED;
  // FAILED: the first cause, with role, exit code and log. INTERRUPTED: the signal's name.
  std::string message;
  Ending ending;  // FAILED: what is known of the first cause
  // STOPPED, INTERRUPTED, FAILED: what work is lost and how to continue; empty if the run cannot
  // continue.
  std::string outlook;
  StatusAnswer last_status;  // the coordinator's last answer
  std::vector<std::string> warnings;
};

// The times of one restart by the launcher, in ms of Unix time, as in logs.
struct RestartTimes {
  int64_t seen_unix_ms = 0;     // the end of the old generation was noticed
  int64_t ended_unix_ms = 0;    // all its processes have ended
  int64_t started_unix_ms = 0;  // all processes of the new one are started
};

class Launcher {
 public:
  // Writes the job into the folder and starts the processes of a generation. `bin_dir` holds the
  // programs, each as ROLE/ROLE (embedding_ps/embedding_ps). `folder` must outlive the launcher.
  // After an error no process is left. REQUIRES: the main thread; no gRPC has been used in this
  // process yet
  static absl::StatusOr<std::unique_ptr<Launcher>> Start(const JobConfig& job,
                                                         const RunFolder& folder,
                                                         const std::string& bin_dir,
                                                         const LaunchOptions& options = {});

  // Ends the processes that still run.
  ~Launcher();

  // Waits for the run's end and then ends all processes. `on_status` receives the coordinator's
  // status a few times a second; if it returns false, the run ends as DISMISSED. `on_message`
  // receives a message for each restart. When a signal asks the run to stop, it also receives a
  // message that says what the launcher waits for, and another one when the wait is over. REQUIRES:
  // called once
  RunEnd Wait(absl::FunctionRef<bool(const StatusAnswer&)> on_status,
              absl::FunctionRef<void(const std::string&)> on_message);

  // Sends a signal to a process, for tests of recovery. May be called in `on_status`. NOT_FOUND if
  // the process does not run.
  absl::Status Signal(Role role, int index, int signal);
  const std::string& run_dir() const;
  // One element for each restart, in order.
  const std::vector<RestartTimes>& restart_times() const;

  // What to report if a signal asked the run to stop but came too late, because the run had
  // finished. Empty if there was no such signal so far. REQUIRES: Wait returned FINISHED
  std::string LateSignalText();

  // The process that starts the others; for tests.
  pid_t starter_pid() const;

 private:
  struct Rep;
  explicit Launcher(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_LAUNCHER_H_
