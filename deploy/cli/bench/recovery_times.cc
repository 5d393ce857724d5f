#include "deploy/cli/bench/recovery_times.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/role/role_flags.h"
#include "deploy/launcher/process/child_process.h"

namespace satrap {
namespace {

// The time of the first line in the log that is of `generation` and contains `words`; -1 if there
// is no such line.
int64_t TimeOf(absl::string_view words, absl::string_view log, uint64_t generation) {
  const std::string head = absl::StrCat(kGenerationLine, generation, " ");
  bool within = false;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StartsWith(line, kGenerationLine)) {
      within = absl::StartsWith(line, head);
    } else if (within && absl::StrContains(line, words)) {
      return UnixMsOfLine(line);
    }
  }
  return -1;
}

}  // namespace

const std::array<const char*, kNumRecoveryPhases> kRecoveryPhaseNames = {
    "death seen", "processes ended", "processes started", "generation claimed", "registration",
    "loading",    "ready",           "connecting",        "first step"};

int64_t UnixMsOfLine(absl::string_view line) {
  std::tm utc = {};
  int ms = 0;
  const std::string text(line.substr(0, 24));
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &ms) != 7) {
    return -1;
  }
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return static_cast<int64_t>(timegm(&utc)) * 1000 + ms;
}

absl::StatusOr<RecoveryTimes> ReadRecoveryTimes(
    const std::vector<std::pair<Role, std::string>>& logs, uint64_t generation,
    int64_t death_unix_ms, const RestartTimes& restart) {
  RecoveryTimes ends = {};
  ends[kSeen] = restart.seen_unix_ms;
  ends[kEnded] = restart.ended_unix_ms;
  ends[kStarted] = restart.started_unix_ms;
  // A phase ends when the last process of its role has logged these words.
  const auto last = [&](RecoveryPhase phase, absl::string_view words,
                        const auto& counts) -> absl::Status {
    for (const auto& [role, log] : logs) {
      if (!counts(role)) continue;
      const int64_t ms = TimeOf(words, log, generation);
      if (ms < 0) {
        return absl::NotFoundError(absl::StrCat("a log of ", RoleName(role), " lacks '", words,
                                                "' in generation ", generation));
      }
      ends[phase] = std::max(ends[phase], ms);
    }
    return absl::OkStatus();
  };
  const auto is = [](Role wanted) { return [wanted](Role role) { return role == wanted; }; };
  RETURN_IF_ERROR(last(kClaimed, "waiting for members", is(COORDINATOR)));
  RETURN_IF_ERROR(last(kRegistered, " registered ", [](Role role) { return role != COORDINATOR; }));
  RETURN_IF_ERROR(last(kLoaded, "has loaded the rows", is(EMBEDDING_PS)));
  RETURN_IF_ERROR(last(kReady, "every role is ready", is(NN_WORKER)));
  RETURN_IF_ERROR(last(kTraining, "begins to train", is(NN_WORKER)));
  RETURN_IF_ERROR(last(kFirstStep, "has made the first step", is(NN_WORKER)));
  RecoveryTimes times = {};
  int64_t before_ms = death_unix_ms;
  for (size_t i = 0; i < kNumRecoveryPhases; ++i) {
    const int64_t end_ms = std::max(before_ms, ends[i]);
    times[i] = end_ms - before_ms;
    before_ms = end_ms;
  }
  return times;
}

}  // namespace satrap
