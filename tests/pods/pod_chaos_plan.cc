#include "tests/pods/pod_chaos_plan.h"

#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/role_flags.h"

namespace satrap {
namespace {

constexpr Role kRoles[] = {COORDINATOR, DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER};
constexpr size_t kReplicas = 2;  // of each role but the coordinator
constexpr int kDeletions = 12;
constexpr int kForcedDeletions = 3;
constexpr size_t kPodsWithoutFirst = 5;

// std::shuffle may give another order with another standard library.
void Shuffle(std::vector<PodChaosEvent>* events, std::mt19937_64* random) {
  for (size_t i = events->size(); i > 1; --i) {
    std::swap((*events)[i - 1], (*events)[(*random)() % i]);
  }
}

// An event that affects a process of one of the roles from `first_role` on.
PodChaosEvent Draw(Disturbance disturbance, size_t first_role, std::mt19937_64* random) {
  PodChaosEvent event;
  event.disturbance = disturbance;
  event.role = kRoles[first_role + (*random)() % (std::size(kRoles) - first_role)];
  if (event.role != COORDINATOR) event.index = static_cast<int>((*random)() % kReplicas);
  return event;
}

}  // namespace

const std::vector<Disturbance>& AllDisturbances() {
  static const std::vector<Disturbance> all = {
      Disturbance::kKill,      Disturbance::kDelete,      Disturbance::kForceDelete,
      Disturbance::kKillFirst, Disturbance::kPause,       Disturbance::kStandStill,
      Disturbance::kDrain,     Disturbance::kUseUpMemory, Disturbance::kRestartKubelet};
  return all;
}

std::string DisturbanceName(Disturbance disturbance) {
  switch (disturbance) {
    case Disturbance::kKill:
      return "process killed";
    case Disturbance::kDelete:
      return "pod deleted";
    case Disturbance::kForceDelete:
      return "pod deleted by force";
    case Disturbance::kKillFirst:
      return "process 1 killed";
    case Disturbance::kPause:
      return "process suspended for 5 s";
    case Disturbance::kStandStill:
      return "process suspended for good";
    case Disturbance::kDrain:
      return "node drained";
    case Disturbance::kUseUpMemory:
      return "memory used up";
    case Disturbance::kRestartKubelet:
      return "kubelet restarted";
  }
  return "";
}

std::string PodChaosText(const PodChaosEvent& event) {
  const std::string name = DisturbanceName(event.disturbance);
  if (event.disturbance == Disturbance::kDrain ||
      event.disturbance == Disturbance::kRestartKubelet) {
    return name;
  }
  return absl::StrCat(name, ": ", MemberName(event.role, event.index));
}

int MostGenerations(Disturbance disturbance) {
  switch (disturbance) {
    case Disturbance::kPause:
    case Disturbance::kRestartKubelet:
      return 0;
    case Disturbance::kForceDelete:
      // The pod's successor may come while the pod's own processes still run.
      return 2;
    default:
      return 1;
  }
}

std::vector<PodChaosEvent> PlanPodChaos(int kills, uint64_t seed) {
  // The standard specifies the numbers of this generator exactly, but not those of the standard
  // library's distributions.
  std::mt19937_64 random(seed);
  std::vector<PodChaosEvent> first;
  for (const Role role : kRoles) {
    for (size_t i = 0; i < (role == COORDINATOR ? 1 : kReplicas); ++i) {
      first.push_back({Disturbance::kKillFirst, role, static_cast<int>(i)});
    }
  }
  Shuffle(&first, &random);
  std::vector<PodChaosEvent> events(first.begin(), first.begin() + kPodsWithoutFirst);
  for (int i = 0; i < kills; ++i) events.push_back(Draw(Disturbance::kKill, 0, &random));
  for (int i = 0; i < kDeletions; ++i) events.push_back(Draw(Disturbance::kDelete, 0, &random));
  for (int i = 0; i < kForcedDeletions; ++i) {
    events.push_back(Draw(Disturbance::kForceDelete, 0, &random));
  }
  events.push_back(Draw(Disturbance::kPause, 1, &random));
  events.push_back(Draw(Disturbance::kStandStill, 1, &random));
  events.push_back(
      {Disturbance::kUseUpMemory, EMBEDDING_PS, static_cast<int>(random() % kReplicas)});
  events.push_back({Disturbance::kDrain, COORDINATOR, 0});
  events.push_back({Disturbance::kRestartKubelet, COORDINATOR, 0});
  Shuffle(&events, &random);
  return events;
}

}  // namespace satrap
