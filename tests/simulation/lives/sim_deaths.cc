#include "tests/simulation/lives/sim_deaths.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/numeric/random.h"

namespace satrap::simulation {
namespace {

// Streams of RandomBits, other than those of sim_data.cc. Whatever is added to the plan must draw
// from a stream of its own: more draws from an old one would change every world that a seed stands
// for, and with them the seeds that the README gives for planted faults.
constexpr uint64_t kPlanStream = 83;
constexpr uint64_t kEndStream = 85;
constexpr uint64_t kClaimStream = 87;
constexpr uint64_t kResumeStream = 89;
constexpr uint64_t kPodStream = 91;
constexpr uint64_t kAgainStream = 93;
constexpr uint64_t kStaleStream = 95;
constexpr uint64_t kTwinStream = 97;
constexpr uint64_t kCoordinatorPodStream = 99;
constexpr uint64_t kAbsenceStream = 101;

constexpr int kMaxEnds = 3;
// These limits are so small that most lives reach the operation that is to fail. The second is for
// the log's folder, where there are few operations, and the third for a claim, which is short.
constexpr uint64_t kMostOperations = 40;
constexpr uint64_t kMostLogOperations = 12;
constexpr uint64_t kMostClaimOperations = 24;
// A life ends after fewer than 2^n events, where n is drawn from 4 to 12. The shortest lives end
// when they have just begun, and the longest when they have been in evaluations for a long time.
constexpr int kFewestEventBits = 4;
constexpr int kMostEventBits = 12;
constexpr uint64_t kMostActs = 20;
constexpr int64_t kNextLifeMaxUs = 50000;
constexpr int64_t kZombieMaxUs = 5000000;
constexpr int64_t kTwinStartsMaxUs = 1000000;

// Draws a time below `limit_us`, with all orders of magnitude equally likely: a message takes
// microseconds and a missed heartbeat seconds, and faults hide in races with either.
int64_t DrawUs(SplitMix64* random, int64_t limit_us) {
  int64_t bits = 0;
  while ((int64_t{1} << bits) < limit_us) ++bits;
  const int64_t range = int64_t{1} << random->Below(bits + 1);
  return static_cast<int64_t>(random->Below(range));
}

}  // namespace

ProcessEnd LifeEnd::OfProcess(size_t index) const {
  SplitMix64 random(RandomBits(seed, index, kPlanStream));
  ProcessEnd end;
  if (nobody_dies) return end;
  if (random.Below(4) == 0) end.stands_still_us = DrawUs(&random, kZombieMaxUs);
  switch (random.Below(3)) {
    case 0:
      end.dies_after_us = 0;
      break;
    case 1:
      end.dies_after_us = DrawUs(&random, kZombieMaxUs);
      break;
    default:
      break;
  }
  return end;
}

void EndProcesses(const LifeEnd& end, const std::vector<std::unique_ptr<SimProcess>>& processes,
                  SimLoop* loop) {
  for (size_t i = 0; i < processes.size(); ++i) {
    SimProcess* process = processes[i].get();
    // All processes die at once if the local launcher kills them. Otherwise each dies late or
    // never, as on machines where nobody can kill them all.
    if (end.all_at_once) process->Kill();
    const ProcessEnd fate = end.OfProcess(i);
    process->StandStill(fate.stands_still_us);
    if (fate.dies_after_us < 0) continue;
    loop->PostAfter(fate.dies_after_us, [process] { process->Kill(); });
  }
}

LifeEnd DeathPlan::DrawEnd(uint64_t seed, uint64_t life) {
  SplitMix64 random(RandomBits(seed, life, kEndStream));
  LifeEnd end;
  constexpr LifeEnd::How kHows[] = {
      LifeEnd::kPower,     LifeEnd::kOtherLauncher, LifeEnd::kFailedWrite, LifeEnd::kStopWish,
      LifeEnd::kScaleWish, LifeEnd::kFailedRead,    LifeEnd::kFailure};
  // Half of the ends remain plain deaths, because these can happen at any moment.
  const uint64_t how = random.Below(2 * std::size(kHows));
  if (how < std::size(kHows)) end.how = kHows[how];
  const uint64_t bits = kFewestEventBits + random.Below(kMostEventBits - kFewestEventBits + 1);
  end.after_events = static_cast<int64_t>(random.Below(uint64_t{1} << bits));
  // Any number may be drawn, because it is not known yet how many processes the life will have.
  end.victim = random.Next();
  end.at_act = random.Below(2) == 0 ? 0 : 1 + static_cast<int64_t>(random.Below(kMostActs));
  end.in_log = random.Below(2) == 0;
  const bool is_in_log = end.how == LifeEnd::kFailedWrite && end.in_log;
  end.nth_operation =
      1 + static_cast<int64_t>(random.Below(is_in_log ? kMostLogOperations : kMostOperations));
  end.disk_is_full = random.Below(2) == 0;
  end.next_after_us = DrawUs(&random, kNextLifeMaxUs);
  end.other_replicas = random.Below(2) == 0;
  end.all_at_once = random.Below(4) == 0;
  end.seed = random.Next();
  end.cannot_begin = end.how == LifeEnd::kScaleWish && random.Below(2) == 0;
  return end;
}

DeathPlan DeathPlan::Draw(uint64_t seed) {
  SplitMix64 random(RandomBits(seed, 0, kPlanStream));
  DeathPlan plan;
  plan.seed = seed;
  const uint64_t ends = 1 + random.Below(kMaxEnds);
  for (uint64_t i = 0; i < ends; ++i) plan.ends.push_back(DrawEnd(seed, i));
  for (uint64_t wishes = random.Below(3); wishes > 0; --wishes) {
    plan.cut_wishes.push_back(static_cast<int64_t>(random.Below(uint64_t{1} << kMostEventBits)));
  }
  if (random.Below(3) == 0) {
    KillPoint& point = plan.kill_points.emplace_back();
    point.set_point(static_cast<KillPoint::Point>(1 + random.Below(KillPoint::Point_MAX)));
    point.set_replica(static_cast<int>(random.Below(2)));
    point.set_visit(1 + static_cast<int64_t>(random.Below(3)));
    point.set_generation(1 + static_cast<int64_t>(random.Below(3)));
  }
  // Only a few worlds are like this, because each of them has as many lives as `max_restarts`
  // allows.
  if (random.Below(12) == 0) {
    plan.poison_after_events = 1 + static_cast<int64_t>(random.Below(uint64_t{1} << 10));
    plan.max_restarts = 1 + static_cast<int>(random.Below(4));
  }
  SplitMix64 pods(RandomBits(seed, 0, kPodStream));
  plan.in_pods = pods.Below(2) == 0;
  plan.dies_after_stop_cut = pods.Below(3) == 0;
  for (uint64_t moves = plan.in_pods ? pods.Below(3) : 0; moves > 0; --moves) {
    // One bit more than for the end of a life: moves count the events of the world, not of a life.
    const uint64_t bits = kFewestEventBits + pods.Below(kMostEventBits - kFewestEventBits + 2);
    const auto after_events = static_cast<int64_t>(pods.Below(uint64_t{1} << bits));
    plan.moves.emplace_back(after_events, pods.Next());
  }
  std::sort(plan.moves.begin(), plan.moves.end());
  SplitMix64 absence(RandomBits(seed, 0, kAbsenceStream));
  if (absence.Below(8) == 0 && plan.in_pods && plan.poison_after_events == 0) {
    plan.absent_from_life = 1 + static_cast<int>(absence.Below(3));
    plan.absent_member = absence.Next();
  }
  return plan;
}

int64_t DeathPlan::RivalAt(int life) const {
  if (seed == 0) return 0;
  SplitMix64 random(RandomBits(seed, static_cast<uint64_t>(life), kClaimStream));
  if (random.Below(3) != 0) return 0;
  return 1 + static_cast<int64_t>(random.Below(kMostClaimOperations));
}

bool DeathPlan::ResumesWithWrongJob(int life) const {
  if (seed == 0) return false;
  return SplitMix64(RandomBits(seed, static_cast<uint64_t>(life), kResumeStream)).Below(3) == 0;
}

bool DeathPlan::StartsAgainAfterEnd(int life) const {
  if (seed == 0) return false;
  return SplitMix64(RandomBits(seed, static_cast<uint64_t>(life), kAgainStream)).Below(2) == 0;
}

bool DeathPlan::HasStaleCoordinator(int life) const {
  if (!in_pods) return false;
  return SplitMix64(RandomBits(seed, static_cast<uint64_t>(life), kStaleStream)).Below(2) == 0;
}

absl::optional<TwinPlan> DeathPlan::TwinOf(int life) const {
  if (!in_pods) return absl::nullopt;
  SplitMix64 random(RandomBits(seed, static_cast<uint64_t>(life), kTwinStream));
  if (random.Below(2) != 0) return absl::nullopt;
  TwinPlan twin;
  twin.member = random.Next();
  twin.in_its_pod = random.Below(2) == 0;
  twin.fails = twin.in_its_pod && random.Below(3) > 0;
  twin.starts_after_us = DrawUs(&random, kTwinStartsMaxUs);
  twin.dies_after_us = DrawUs(&random, kZombieMaxUs);
  return twin;
}

bool DeathPlan::MovesCoordinator(int life) const {
  if (!in_pods) return false;
  SplitMix64 random(RandomBits(seed, static_cast<uint64_t>(life), kCoordinatorPodStream));
  return random.Below(2) == 0;
}

bool DeathPlan::HasTwinCoordinator(int life) const {
  // The large number keeps this draw apart from those of MovesCoordinator for later lives.
  return MovesCoordinator(life) &&
         SplitMix64(RandomBits(seed, static_cast<uint64_t>(life) + 1000000, kCoordinatorPodStream))
                 .Below(2) == 0;
}

std::string DeathPlan::Describe() const {
  constexpr const char* kHows[] = {"a death",         "a loss of power", "another launcher",
                                   "a failing write", "a wish to stop",  "a wish to scale",
                                   "a failing read",  "a failure"};
  std::string text;
  for (const LifeEnd& end : ends) {
    absl::StrAppend(
        &text, text.empty() ? "" : "; ", kHows[end.how], " after ", end.after_events, " events",
        end.how == LifeEnd::kDeath && end.at_act > 0 ? absl::StrCat(" and ", end.at_act, " acts")
                                                     : "",
        end.all_at_once ? ", of all processes" : "", ", the next life ", end.next_after_us,
        " us later", end.other_replicas ? " with other replicas" : "",
        end.cannot_begin ? ", and the size cannot begin" : "");
  }
  for (const int64_t wish : cut_wishes) {
    absl::StrAppend(&text, "; a wish for a cut after ", wish, " events");
  }
  if (in_pods) absl::StrAppend(&text, "; in pods");
  for (const auto& [after_events, who] : moves) {
    absl::StrAppend(&text, "; a move after ", after_events, " events");
  }
  if (absent_from_life > 0) {
    absl::StrAppend(&text, "; a member is missing from life ", absent_from_life, " on");
  }
  if (dies_after_stop_cut) absl::StrAppend(&text, "; a death after the cut of a stop");
  for (const KillPoint& point : kill_points) {
    absl::StrAppend(&text, "; kill point {", point.ShortDebugString(), "}");
  }
  if (poison_after_events > 0) {
    absl::StrAppend(&text, "; poison after ", poison_after_events, " events, ", max_restarts,
                    " restarts");
  }
  return text;
}

}  // namespace satrap::simulation
