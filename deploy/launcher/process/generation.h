// The processes of one generation of a run: a coordinator and the replicas of each role.
//
// Not thread-safe: only the launcher's main thread may use it.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_GENERATION_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_GENERATION_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "deploy/launcher/process/log_cutter.h"
#include "deploy/launcher/process/process_starter.h"
#include "deploy/launcher/process/run_folder.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct RoleProcess {
  Role role;
  int index;
  std::string name;  // "nn_worker 1"
  std::string log_path;
  std::string ending_path;  // where the process writes its Ending (common/role/ending.h)
  pid_t pid;
  bool ended = false;
  int wait_status = 0;   // once it has ended
  int64_t ended_ms = 0;  // MonotonicMs when the end was noticed

  bool ended_well() const { return ended && wait_status == 0; }
  bool was_killed() const;
  bool exited_with(int code) const;
};

class Generation {
 public:
  // Nothing is owned.
  Generation(ProcessStarter* starter, const RunFolder* folder, std::string bin_dir);

  // Writes into each log which generation begins, removes the endings that the previous processes
  // have written, and starts all processes. The coordinator is started first, and only it receives
  // `coordinator_flags`. Errors are those of ProcessStarter; processes that were started before the
  // error continue to run. FAILED_PRECONDITION, and nothing is started, if the job needs GPUs and
  // the NN worker's program for them was not built. REQUIRES: no process of an earlier generation
  // runs
  absl::Status Start(const JobConfig& job, uint64_t number,
                     const std::vector<std::string>& coordinator_flags);
  // Records which processes have ended. Every few seconds it also begins to shorten logs that have
  // become too long (log_cutter.h), and does not wait until that is done. If the starter was lost,
  // and with it all processes, replaces the starter: errors are those of ProcessStarter::Replace.
  absl::Status Reap();
  // Waits until each process except the coordinator has ended, or the time is over.
  absl::Status WaitForRoles(int64_t timeout_ms);
  // Sends `signal` to all, and waits until all have ended or the time is over.
  absl::Status End(int signal, int64_t timeout_ms);
  absl::Status Signal(Role role, int index, int signal);

  const std::vector<RoleProcess>& processes() const { return processes_; }
  const RoleProcess& coordinator() const { return processes_.front(); }
  // "unix:...", the same in each generation.
  std::string coordinator_address() const;
  // ABORTED if all processes have ended because the starter was lost; otherwise OK.
  const absl::Status& starter_loss() const { return starter_loss_; }
  bool AnyEnded() const;
  bool AllEnded() const;
  // The process that ended first, of those for which `counts` is true; null if none of them has
  // ended.
  const RoleProcess* FirstEnded(absl::FunctionRef<bool(const RoleProcess&)> counts) const;

 private:
  absl::Status StartOne(const JobConfig& job, Role role, int index, uint64_t number,
                        const std::vector<std::string>& coordinator_flags);

  ProcessStarter* const starter_;
  const RunFolder* const folder_;
  const std::string bin_dir_;
  std::vector<RoleProcess> processes_;
  absl::Status starter_loss_;
  int64_t next_cut_ms_ = 0;  // when logs are cut next
  LogCutter log_cutter_;
};

// The path as a user would type it: relative if it is below the current directory.
std::string ShownPath(const std::string& path);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_GENERATION_H_
