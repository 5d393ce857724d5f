#include "common/checkpoint/entries/incomplete_since.h"

#include "common/checkpoint/entries/run_end.h"

namespace satrap {

absl::optional<int64_t> IncompleteSinceMs(const std::vector<RunLogEntry>& entries) {
  const uint64_t submission = SubmissionOf(entries);
  absl::optional<int64_t> since_ms;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->has_complete() || entry->has_running() || entry->has_cut()) break;
    // The run has its earlier job again, so the time starts again, too.
    if (entry->has_dropped()) break;
    // An entry that only announces a new size does not begin a generation of that size.
    if (!entry->has_generation() || entry->generation().began() == BEGAN_SCALE_ANNOUNCED) continue;
    if (SubmissionOfGeneration(entry->generation()) != submission) break;
    since_ms = static_cast<int64_t>(entry->unix_ms());
  }
  return since_ms;
}

}  // namespace satrap
