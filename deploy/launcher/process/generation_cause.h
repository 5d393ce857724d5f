// Finds out why a generation ended, from the signals, exit codes and endings (common/role/ending.h)
// of its processes, and from its coordinator's answers. Logs are only shown to people.
//
// Thread-safe: the functions depend only on their arguments and on the files that the processes
// have left.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_GENERATION_CAUSE_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_GENERATION_CAUSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/launcher/process/generation.h"
#include "deploy/launcher/process/run_progress.h"
#include "proto/control.pb.h"

namespace satrap {

struct Cause {
  Ending ending;     // its text: "embedding_ps 1 was killed by signal 9 (Killed)"
  std::string full;  // the text with the path of the process's log and its last error
};

// The cause to report if the generation ended because `process` ended. REQUIRES: `process` has
// ended
Cause CauseOf(const RoleProcess& process);

// The cause to report when a process of a generation could not be started. `not_started` says why.
Cause CauseOf(const absl::Status& not_started);

// What the launcher knows about a generation's coordinator.
struct CoordinatorView {
  StatusAnswer status;     // its last answer
  bool answers = false;    // it answered the last call
  bool is_silent = false;  // it has not answered for longer than the limit
  // MonotonicMs when the state first was FAILED or RESTARTING, or the run's end was decided.
  int64_t over_ms = 0;
};

// Finds what went wrong first. Returns the first of these causes that applies: the loss of the
// starter, with which all processes end; a process that was killed by a signal; a coordinator that
// runs but does not answer; the first failure that was reported to the coordinator; the first
// process that ended. REQUIRES: the generation is over
Cause FindCause(const Generation& generation, const CoordinatorView& view);

// Why a run has failed. `in_log` is the ending in the run's log; `seen` is what the launcher has
// found out about the end of the last generation. A role that was killed could not report that, so
// the log has only what another process saw of its death; then returns `seen`.
Cause CauseOfEndInLog(const Ending& in_log, const Cause& seen);

// The message about a restart: its reason, and where the run continues. REQUIRES: `progress` was
// read after the end of the generation
std::string RestartText(const Cause& cause, bool is_scaled, int64_t pause_ms,
                        const RunProgress& progress, const StatusAnswer& status);

// A text for a training that has ended: what is lost, and how to continue the training. Empty if it
// cannot be continued. `before` was read when the training's last generation was started.
struct EndOfGeneration {
  bool saved = false;         // nothing is lost
  bool has_run = false;       // all its roles were ready
  bool has_answered = false;  // its coordinator has answered
};
std::string OutlookText(const std::string& run_dir, const RunProgress& before,
                        const StatusAnswer& status, const EndOfGeneration& end);

// Whether the log shows that all work of `generation` is saved, although the coordinator could not
// report that. For a run whose command was interrupted.
bool IsSavedAtStop(const RunProgress& newest, uint64_t generation);

// Adds the flags that report a generation's end to the next coordinator (CoordinatorFlags).
void AddFlagsOf(const Ending& ending, std::vector<std::string>* flags);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_GENERATION_CAUSE_H_
