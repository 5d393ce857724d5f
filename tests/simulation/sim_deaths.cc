#include "tests/simulation/sim_deaths.h"

#include "absl/strings/str_cat.h"
#include "common/numeric/random.h"

namespace satrap::simulation {
namespace {

constexpr uint64_t kPlanStream = 83;  // of RandomBits; sim_data.cc has the smaller ones
constexpr int kMaxEnds = 3;
// An end comes after 2^4 to 2^12 events: some lives have just begun, some have long evaluated.
constexpr int kFewestEventBits = 4;
constexpr int kMostEventBits = 12;
constexpr uint64_t kMostActs = 20;
constexpr int64_t kNextLifeMaxUs = 50000;
constexpr int64_t kZombieMaxUs = 5000000;

// Evenly over the orders of magnitude below `limit_us`.
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

DeathPlan DeathPlan::Draw(uint64_t seed) {
  SplitMix64 random(RandomBits(seed, 0, kPlanStream));
  DeathPlan plan;
  plan.ends.resize(1 + random.Below(kMaxEnds));
  for (LifeEnd& end : plan.ends) {
    const uint64_t bits = kFewestEventBits + random.Below(kMostEventBits - kFewestEventBits + 1);
    end.after_events = static_cast<int64_t>(random.Below(uint64_t{1} << bits));
    end.victim = random.Next();
    end.at_act = random.Below(2) == 0 ? 0 : 1 + static_cast<int64_t>(random.Below(kMostActs));
    end.next_after_us = DrawUs(&random, kNextLifeMaxUs);
    end.other_replicas = random.Below(2) == 0;
    end.all_at_once = random.Below(4) == 0;
    end.seed = random.Next();
  }
  return plan;
}

std::string DeathPlan::Describe() const {
  std::string text;
  for (const LifeEnd& end : ends) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "a death after ", end.after_events, " events",
                    end.at_act > 0 ? absl::StrCat(" and ", end.at_act, " acts") : "",
                    end.all_at_once ? ", of all processes" : "", ", the next life ",
                    end.next_after_us, " us later",
                    end.other_replicas ? " with other replicas" : "");
  }
  return text;
}

}  // namespace satrap::simulation
