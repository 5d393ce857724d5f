// Divides the time between the death of a process and the first step of the next generation into
// phases. The times come from the launcher and from the logs of that generation's processes.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_CLI_BENCH_RECOVERY_TIMES_H_
#define SATRAP_DEPLOY_CLI_BENCH_RECOVERY_TIMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/launcher/launcher.h"

namespace satrap {

// The phases of a recovery, in this order, each with the event that ends it.
enum RecoveryPhase : size_t {
  kSeen,        // the launcher sees that the generation is over
  kEnded,       // all processes of the old generation have ended
  kStarted,     // the processes of the next generation are started
  kClaimed,     // the coordinator has claimed the generation, and serves
  kRegistered,  // all roles have registered
  kLoaded,      // all embedding PSs have loaded their rows
  kReady,       // all ranks know that every role is ready
  kTraining,    // ranks are connected and have loaded the dense network
  kFirstStep,   // all ranks have made their first step
  kNumRecoveryPhases,
};

// "death seen", "processes ended", ...: the names of the phases.
extern const std::array<const char*, kNumRecoveryPhases> kRecoveryPhaseNames;

// The duration of each phase in milliseconds, from the end of the previous phase; the first phase
// begins with the death. A phase that ended before the previous one did has the duration 0. The sum
// is the duration of the recovery.
using RecoveryTimes = std::array<int64_t, kNumRecoveryPhases>;

// The time of a line of a process's log, in ms since 1970; -1 for a line of another form.
int64_t UnixMsOfLine(absl::string_view line);

// `logs` holds the role and the log file's content of each process. `generation` is the one that
// follows the death at `death_unix_ms`, and `restart` holds the times that the launcher measured
// when it started that generation. NOT_FOUND names a moment that the logs do not show.
absl::StatusOr<RecoveryTimes> ReadRecoveryTimes(
    const std::vector<std::pair<Role, std::string>>& logs, uint64_t generation,
    int64_t death_unix_ms, const RestartTimes& restart);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_BENCH_RECOVERY_TIMES_H_
