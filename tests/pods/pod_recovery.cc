#include "tests/pods/pod_recovery.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/role/role_flags.h"
#include "deploy/launcher/process/child_process.h"

namespace satrap {
namespace {

// The line that a supervisor logs before it starts a process of its role.
constexpr char kStartLine[] = "---- start ";
// The number does not matter, because only the part of each log after the newest start is used.
constexpr uint64_t kNewest = 1;

// The times of the lines that contain `words`, in order.
std::vector<int64_t> TimesIn(absl::string_view log, absl::string_view words) {
  std::vector<int64_t> times;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    const int64_t ms = absl::StrContains(line, words) ? UnixMsOfLine(line) : -1;
    if (ms >= 0) times.push_back(ms);
  }
  return times;
}

}  // namespace

absl::StatusOr<RecoveryTimes> ReadRecoveryInPods(
    const std::vector<std::pair<Role, std::string>>& logs, int64_t disturbed_unix_ms) {
  RestartTimes restart;
  std::vector<std::pair<Role, std::string>> newest;
  for (const auto& [role, log] : logs) {
    const size_t start = log.rfind(kStartLine);
    if (start == std::string::npos) {
      return absl::NotFoundError(absl::StrCat("a log of ", RoleName(role), " shows no start"));
    }
    const absl::string_view before = absl::string_view(log).substr(0, start);
    const absl::string_view after = absl::string_view(log).substr(start);
    if (role == COORDINATOR) {
      const std::vector<int64_t> over = TimesIn(before, "RESTARTING");
      if (!over.empty()) restart.seen_unix_ms = over.back();
    }
    const std::vector<int64_t> old_lines = TimesIn(before, "");
    if (!old_lines.empty()) {
      restart.ended_unix_ms = std::max(restart.ended_unix_ms, old_lines.back());
    }
    const std::vector<int64_t> new_lines = TimesIn(after, "");
    if (!new_lines.empty()) {
      restart.started_unix_ms = std::max(restart.started_unix_ms, new_lines.front());
    }
    newest.emplace_back(role, absl::StrCat(kGenerationLine, kNewest, " ----\n", after));
  }
  return ReadRecoveryTimes(newest, kNewest, disturbed_unix_ms, restart);
}

}  // namespace satrap
