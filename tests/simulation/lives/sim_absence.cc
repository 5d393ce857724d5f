#include "tests/simulation/lives/sim_absence.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace satrap::simulation {
namespace {

// How long a half of a torn cluster has the run, until the other one has asked its coordinator for
// long enough.
constexpr int64_t kTornUs = 9 * 1000 * 1000;
// The last generation waits for those that come, and its coordinator ticks and writes the end.
constexpr int64_t kLateUs = 10 * 1000 * 1000;
constexpr uint64_t kEndsOfHalves = 2000;  // of DrawEnd: above those of other lives

}  // namespace

absl::optional<uint64_t> SimAbsence::Begin(int life, const ClaimedGeneration& claimed,
                                           int64_t now_us) {
  began_us_ = now_us;
  const bool lacked = lacks_;
  lacks_ = deaths_.absent_from_life > 0 && life >= deaths_.absent_from_life && !is_over_;
  if (!lacks_) return absl::nullopt;
  generations_.insert(claimed.generation);
  const std::vector<RunLogEntry>& entries = claimed.log.entries();
  const auto dropped = std::count_if(entries.begin(), entries.end(),
                                     [](const RunLogEntry& entry) { return entry.has_dropped(); });
  const std::pair<uint64_t, int> run = {claimed.submission, static_cast<int>(dropped)};
  // The time begins anew when the run is resumed, and when it has its earlier job again.
  if (!lacked || run != run_) since_us_ = now_us;
  run_ = run;
  return deaths_.absent_member;
}

absl::optional<LifeEnd> SimAbsence::Tear(int life, int64_t now_us, bool disk_has_failed) {
  if (!lacks_) return absl::nullopt;
  if (now_us - since_us_ > kLimitUs + kLateUs && !disk_has_failed) {
    violated_(absl::StrCat("the run continues, although it has lacked a member for ",
                           (now_us - since_us_) / 1000000, " s"));
  }
  if (now_us - began_us_ < kTornUs) return absl::nullopt;
  LifeEnd end = DeathPlan::DrawEnd(deaths_.seed, static_cast<uint64_t>(life) + kEndsOfHalves);
  end.how = LifeEnd::kOtherLauncher;
  end.other_replicas = false;
  return end;
}

void SimAbsence::OnLog(const SimLog& log) {
  for (const auto& read : log.entries) {
    const RunLogEntry& entry = read->message;
    if (entry.has_complete() && generations_.count(entry.complete().generation()) > 0) {
      violated_(absl::StrCat("generation ", entry.complete().generation(),
                             " is said to have all its members, and lacks one"));
    }
  }
}

}  // namespace satrap::simulation
