#include "common/checkpoint/entries/incomplete_since.h"

#include "common/checkpoint/entries/run_end.h"

namespace satrap {

absl::optional<int64_t> IncompleteSinceMs(const std::vector<RunLogEntry>& entries) {
  const uint64_t submission = SubmissionOf(entries);
  absl::optional<int64_t> since_ms;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->has_complete() || entry->has_running() || entry->has_cut()) break;
    // A size that could not begin is given up, and the run has its earlier one.
    if (entry->has_dropped()) break;
    // A size that is only announced has not begun.
    if (!entry->has_generation() || entry->generation().began() == BEGAN_SCALE_ANNOUNCED) continue;
    if (SubmissionOfGeneration(entry->generation()) != submission) break;
    since_ms = static_cast<int64_t>(entry->unix_ms());
  }
  return since_ms;
}

}  // namespace satrap
