#include "deploy/cli/chaos/chaos_plan.h"

#include <cmath>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/role_flags.h"

namespace satrap {
namespace {

constexpr Role kRoles[] = {COORDINATOR, DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER};
// After the last event the run must be long enough to recover and to be observed.
constexpr double kLastFraction = 0.9;

// Draws the process that the event affects. The coordinator is as likely as any other role.
void DrawProcess(const JobConfig& job, size_t first_role, std::mt19937_64* random,
                 ChaosEvent* event) {
  event->role = kRoles[first_role + (*random)() % (std::size(kRoles) - first_role)];
  event->index =
      static_cast<int>((*random)() % static_cast<uint64_t>(ReplicasOf(event->role, job)));
}

}  // namespace

std::vector<ChaosEvent> PlanChaos(const JobConfig& job, int kills, uint64_t seed) {
  // The standard specifies the numbers of this generator exactly, but not those of the standard
  // library's distributions.
  std::mt19937_64 random(seed);
  std::vector<ChaosEvent> events(static_cast<size_t>(kills) + 2);
  events[0].stop_seconds = kShortStopSeconds;
  events[1].stop_seconds = kLongStopSeconds;
  for (size_t i = events.size() - 1; i > 0; --i) {
    std::swap(events[i].stop_seconds, events[random() % (i + 1)].stop_seconds);
  }
  const double width = kLastFraction / static_cast<double>(events.size());
  for (size_t i = 0; i < events.size(); ++i) {
    ChaosEvent& event = events[i];
    const double within = 0.2 + 0.6 * static_cast<double>(random() % 1000) * 1e-3;
    event.fraction = (static_cast<double>(i) + within) * width;
    DrawProcess(job, /*first_role=*/event.stop_seconds > 0 ? 1 : 0, &random, &event);
  }
  return events;
}

std::vector<ChaosEvent> PlanRandomKills(const JobConfig& job, int kills, double every_seconds,
                                        uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<ChaosEvent> events(static_cast<size_t>(kills));
  for (ChaosEvent& event : events) {
    // In [0, 1), with 53 bits.
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    event.wait_seconds = -std::log1p(-uniform) * every_seconds;
    DrawProcess(job, /*first_role=*/0, &random, &event);
  }
  return events;
}

std::string ChaosText(const ChaosEvent& event) {
  const std::string name = MemberName(event.role, event.index);
  if (event.stop_seconds == 0) return absl::StrCat("kills ", name);
  return absl::StrCat("stops ", name, " for ", event.stop_seconds, " s");
}

}  // namespace satrap
