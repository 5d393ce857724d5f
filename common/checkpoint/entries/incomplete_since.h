// For how long a run in pods has lacked members, as far as its log says. A generation that has all
// its members for a while appends COMPLETE; if it trained, RUNNING or a cut may say so, too. A
// cluster that is torn begins one generation after another, of which none has all its members.
// After a job that could not begin was dropped, the time begins anew.
//
// Thread-safe: a function of its argument.

#ifndef SATRAP_COMMON_CHECKPOINT_ENTRIES_INCOMPLETE_SINCE_H_
#define SATRAP_COMMON_CHECKPOINT_ENTRIES_INCOMPLETE_SINCE_H_

#include <vector>

#include "absl/types/optional.h"
#include "proto/run_log.pb.h"

namespace satrap {

// When the first generation of the newest submission began since one that had all its members, in
// ms since 1970; nothing if there is none. `entries` are those of a run's log (RunLog::entries).
absl::optional<int64_t> IncompleteSinceMs(const std::vector<RunLogEntry>& entries);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_ENTRIES_INCOMPLETE_SINCE_H_
