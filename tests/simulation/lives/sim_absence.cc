#include "tests/simulation/lives/sim_absence.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/role/role_flags.h"

namespace satrap::simulation {
namespace {

// How long one half of a divided cluster has the run before the other half, whose processes ask a
// coordinator of their own for a place, takes it over.
constexpr int64_t kTornUs = 9 * 1000 * 1000;
// The run may fail this much later: the last generation waits for the members that do come, and
// then its coordinator must tick and write the end.
constexpr int64_t kLateUs = 10 * 1000 * 1000;
constexpr uint64_t kEndsOfHalves = 2000;  // of DrawEnd: above those of other lives

std::vector<SimAbsence::Place> PlacesOf(const JobConfig& job) {
  std::vector<SimAbsence::Place> places;
  for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
    for (int index = 0; index < ReplicasOf(role, job); ++index) places.emplace_back(role, index);
  }
  return places;
}

}  // namespace

absl::optional<SimAbsence::Place> SimAbsence::Begin(int life, const ClaimedGeneration& claimed,
                                                    int64_t now_us) {
  began_us_ = now_us;
  const bool lacked = lacks_;
  lacks_ = deaths_.absent_from_life > 0 && life >= deaths_.absent_from_life && !is_over_;
  if (!lacks_) return absl::nullopt;
  const std::vector<RunLogEntry>& entries = claimed.log.entries();
  const auto dropped = std::count_if(entries.begin(), entries.end(),
                                     [](const RunLogEntry& entry) { return entry.has_dropped(); });
  const std::pair<uint64_t, int> run = {claimed.submission, static_cast<int>(dropped)};
  // The time begins anew when the run is resumed, when it has its earlier job again, and after a
  // generation of which the log says that it had all its members.
  const bool was_complete = std::any_of(entries.begin(), entries.end(), [this](const auto& entry) {
    return entry.has_complete() && !missing_.empty() &&
           entry.complete().generation() == missing_.rbegin()->first;
  });
  if (!lacked || run != run_ || was_complete) since_us_ = now_us;
  run_ = run;
  const std::vector<Place> places = PlacesOf(claimed.job);
  const Place place = places[deaths_.absent_member % places.size()];
  missing_[claimed.generation] = place;
  return place;
}

void SimAbsence::OnHeard(const HeartbeatRequest& beat, int64_t now_us) {
  const auto missing = missing_.find(beat.envelope().generation());
  if (missing == missing_.end()) return;
  if (missing->second != Place(beat.role(), static_cast<int>(beat.index()))) return;
  stood_in_.insert(missing->first);
  if (missing->first == missing_.rbegin()->first) since_us_ = now_us;
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
    if (!entry.has_complete()) continue;
    const uint64_t generation = entry.complete().generation();
    if (missing_.count(generation) > 0 && stood_in_.count(generation) == 0) {
      violated_(absl::StrCat("generation ", generation,
                             " is said to have all its members, and lacks one"));
    }
  }
}

}  // namespace satrap::simulation
