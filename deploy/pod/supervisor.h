// The supervisor of a pod starts a role, starts it again when it has ended (restart_rule.h), and
// ends both the role and itself when it is asked to.
//
// It is process 1 of its container, so it also reaps processes whose parents have ended. It passes
// SIGTERM and SIGINT on to the role, which continues to serve until it may end. Then the supervisor
// ends, too, with the exit code 128 plus the signal's number. If the supervisor is killed, so is
// the role. If a role cannot be started, that is treated as an end of the role. A role that shows
// no sign of life any more (life_watch.h) is killed. The log says so if a role was killed because
// the container's memory was used up (memory_kills.h).
//
// If a coordinator refuses twice in a row to begin, for a cause that no restart cures, it is still
// started again, but its supervisor leaves the cause for the run's Jobs (refusal.h).

#ifndef SATRAP_DEPLOY_POD_SUPERVISOR_H_
#define SATRAP_DEPLOY_POD_SUPERVISOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/pod/life_watch.h"
#include "deploy/pod/restart_rule.h"
#include "deploy/pod/role_log.h"
#include "proto/control.pb.h"

namespace satrap {

struct SupervisorOptions {
  Role role = EMBEDDING_PS;
  int index = 0;
  std::vector<std::string> command;  // the role's program and flags
  std::string ending_path;           // where the command leaves its Ending
  std::string termination_log;       // the container's message; empty: none
  // These are used only for the coordinator: the run's folder, and which submission of the run it
  // belongs to.
  std::string run_dir;
  uint64_t submission = 1;
  int max_restarts = 0;

  LifeLimits life;
  std::string proc_folder = "/proc/self";  // where the container's cgroup is looked up
  int64_t least_pause_ms = 0;  // before each start but the first, whatever the rule says
};

// Supervises until a signal asks for the end; returns the exit code. `log` is not owned. Blocks
// SIGTERM, SIGINT and SIGCHLD in this thread. REQUIRES: called on the main thread; no other thread
// has these signals unblocked
int Supervise(const SupervisorOptions& options, RoleLog* log);

// Blocks the signals that Supervise reads. Call this before the first thread is started.
void BlockSupervisorSignals();

}  // namespace satrap

#endif  // SATRAP_DEPLOY_POD_SUPERVISOR_H_
