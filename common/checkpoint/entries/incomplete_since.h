// Finds out from the log since when a run in pods has lacked members. A generation that has had all
// its members for a while appends COMPLETE; a RUNNING entry or a cut shows the same. If a cluster
// is divided, its parts begin one generation after another, but none of these generations has all
// its members. When a job that could not begin is dropped, the time starts again.
//
// Thread-safe: a function of its argument.

#ifndef SATRAP_COMMON_CHECKPOINT_ENTRIES_INCOMPLETE_SINCE_H_
#define SATRAP_COMMON_CHECKPOINT_ENTRIES_INCOMPLETE_SINCE_H_

#include <vector>

#include "absl/types/optional.h"
#include "proto/run_log.pb.h"

namespace satrap {

// Returns when the first generation after the last complete one began, in ms since 1970. Only
// generations of the newest submission count; nullopt if there is none. `entries` are those of a
// run's log (RunLog::entries).
absl::optional<int64_t> IncompleteSinceMs(const std::vector<RunLogEntry>& entries);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_ENTRIES_INCOMPLETE_SINCE_H_
