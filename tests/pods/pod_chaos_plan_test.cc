#include "tests/pods/pod_chaos_plan.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

std::vector<std::string> TextsOf(const std::vector<PodChaosEvent>& events) {
  std::vector<std::string> texts;
  for (const PodChaosEvent& event : events) texts.push_back(PodChaosText(event));
  return texts;
}

TEST(PodChaosPlanTest, APlanOf75KillsHas100EventsOfAllKinds) {
  std::map<Disturbance, int> counts;
  for (const PodChaosEvent& event : PlanPodChaos(75, 1)) ++counts[event.disturbance];
  const std::map<Disturbance, int> expected = {
      {Disturbance::kKill, 75},         {Disturbance::kDelete, 12},
      {Disturbance::kForceDelete, 3},   {Disturbance::kKillFirst, 5},
      {Disturbance::kPause, 1},         {Disturbance::kStandStill, 1},
      {Disturbance::kDrain, 1},         {Disturbance::kUseUpMemory, 1},
      {Disturbance::kRestartKubelet, 1}};
  EXPECT_EQ(counts, expected);
  EXPECT_EQ(AllDisturbances().size(), expected.size());
}

TEST(PodChaosPlanTest, KillsHitEachProcessOfTheRun) {
  std::set<std::pair<Role, int>> killed;
  for (const PodChaosEvent& event : PlanPodChaos(75, 1)) {
    if (event.disturbance == Disturbance::kKill) killed.insert({event.role, event.index});
  }
  EXPECT_EQ(killed.size(), 9u);
}

TEST(PodChaosPlanTest, TheKubeletPausesForNoContainerBecauseNoneLosesItsFirstProcessTwice) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::set<std::pair<Role, int>> pods;
    for (const PodChaosEvent& event : PlanPodChaos(0, seed)) {
      if (event.disturbance == Disturbance::kKillFirst) pods.insert({event.role, event.index});
    }
    EXPECT_EQ(pods.size(), 5u) << seed;
  }
}

TEST(PodChaosPlanTest, TheCoordinatorIsNotSuspended) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const PodChaosEvent& event : PlanPodChaos(0, seed)) {
      if (event.disturbance == Disturbance::kPause ||
          event.disturbance == Disturbance::kStandStill) {
        EXPECT_NE(event.role, COORDINATOR) << seed;
      }
    }
  }
}

TEST(PodChaosPlanTest, TheSeedAloneDecidesTheOrder) {
  EXPECT_EQ(TextsOf(PlanPodChaos(75, 7)), TextsOf(PlanPodChaos(75, 7)));
  EXPECT_NE(TextsOf(PlanPodChaos(75, 7)), TextsOf(PlanPodChaos(75, 8)));
}

TEST(PodChaosPlanTest, ATextNamesTheProcess) {
  EXPECT_EQ(PodChaosText({Disturbance::kKill, EMBEDDING_PS, 1}), "process killed: embedding_ps 1");
  EXPECT_EQ(PodChaosText({Disturbance::kDrain, COORDINATOR, 0}), "node drained");
}

TEST(PodChaosPlanTest, OnlyAForcedDeletionMayCostTwoGenerations) {
  for (const Disturbance disturbance : AllDisturbances()) {
    EXPECT_EQ(MostGenerations(disturbance) == 2, disturbance == Disturbance::kForceDelete);
  }
  EXPECT_EQ(MostGenerations(Disturbance::kPause), 0);
  EXPECT_EQ(MostGenerations(Disturbance::kRestartKubelet), 0);
}

}  // namespace
}  // namespace satrap
