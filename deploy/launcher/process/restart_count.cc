#include "deploy/launcher/process/restart_count.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"
#include "common/role/cause_table.h"

namespace satrap {
namespace {

constexpr int64_t kLongestPauseMs = 30000;

}  // namespace

absl::StatusOr<int64_t> RestartCount::AddFailure(const Ending& end, int max_restarts) {
  const Ending before = std::exchange(before_, end);
  // If the coordinator knew of this end, it has already decided whether the cause is repeated.
  // Otherwise that is decided here, at the second end: the first end alone may have been a mere
  // consequence of another process's failure.
  repeated_ = IsRepeated(end, before) && NoRestartCures(end, before);
  if (repeated_) {
    return absl::FailedPreconditionError(
        absl::StrCat("\n  the previous generation ended for the same cause and also before all "
                     "roles were ready, so no restart cures it: ",
                     RuleOf(end).cure));
  }
  if (since_cut_ >= max_restarts) {
    if (since_cut_ == 0) return absl::FailedPreconditionError("");
    return absl::FailedPreconditionError(absl::StrCat(
        "\n  the run was restarted ", Counted(static_cast<uint64_t>(since_cut_), "time"),
        " without a cut in between (max_restarts)"));
  }
  before_ready_ = end.before_ready() ? before_ready_ + 1 : 0;
  const int64_t by_restarts = since_cut_ == 0 ? 0 : int64_t{1000} << std::min(since_cut_ - 1, 10);
  ++since_cut_;
  return std::max({std::min(kLongestPauseMs, by_restarts), PauseBeforeReadyMs(before_ready_),
                   RuleOf(end).pause_ms});
}

}  // namespace satrap
