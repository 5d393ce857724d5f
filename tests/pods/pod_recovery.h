// Finds how the time of a recovery in pods was spent, from the logs of the run's processes. In pods
// no launcher measures times, and each process starts by itself.
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_TESTS_PODS_POD_RECOVERY_H_
#define SATRAP_TESTS_PODS_POD_RECOVERY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/cli/bench/recovery_times.h"
#include "proto/control.pb.h"

namespace satrap {

// The phases of the newest recovery, which followed a disturbance at `disturbed_unix_ms`. `logs`
// holds the role and the log file's content of each process of the run. In the phases that a
// launcher measures elsewhere,
//
//   kSeen     the previous coordinator says that the generation is over; 0 ms if it was killed
//             and so says nothing
//   kEnded the process that ended last has logged its last line
//   kStarted the process that started last has logged its first line
//
// NOT_FOUND names a moment that the logs do not show.
absl::StatusOr<RecoveryTimes> ReadRecoveryInPods(
    const std::vector<std::pair<Role, std::string>>& logs, int64_t disturbed_unix_ms);

}  // namespace satrap

#endif  // SATRAP_TESTS_PODS_POD_RECOVERY_H_
