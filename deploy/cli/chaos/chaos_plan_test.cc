#include "deploy/cli/chaos/chaos_plan.h"

#include <algorithm>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig TwoOfEach() {
  JobConfig job;
  job.mutable_data_loader()->set_replicas(2);
  job.mutable_embedding_worker()->set_replicas(2);
  job.mutable_embedding_ps()->set_replicas(2);
  job.mutable_nn_worker()->set_replicas(2);
  return job;
}

std::string TextOf(const std::vector<ChaosEvent>& events) {
  std::string text;
  for (const ChaosEvent& event : events) {
    text += std::to_string(event.fraction) + " " + ChaosText(event) + "\n";
  }
  return text;
}

TEST(ChaosPlan, IsTheSameForTheSameSeed) {
  EXPECT_EQ(TextOf(PlanChaos(TwoOfEach(), 20, 7)), TextOf(PlanChaos(TwoOfEach(), 20, 7)));
  EXPECT_NE(TextOf(PlanChaos(TwoOfEach(), 20, 7)), TextOf(PlanChaos(TwoOfEach(), 20, 8)));
}

TEST(ChaosPlan, HitsEveryProcessAndStopsOneShortlyAndOneForLong) {
  std::set<std::string> killed;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<ChaosEvent> events = PlanChaos(TwoOfEach(), 20, seed);
    ASSERT_EQ(events.size(), 22u);
    EXPECT_TRUE(std::is_sorted(
        events.begin(), events.end(),
        [](const ChaosEvent& a, const ChaosEvent& b) { return a.fraction < b.fraction; }));
    EXPECT_GT(events.front().fraction, 0);
    EXPECT_LT(events.back().fraction, 0.9);
    int short_stops = 0;
    int long_stops = 0;
    for (const ChaosEvent& event : events) {
      short_stops += event.stop_seconds == kShortStopSeconds ? 1 : 0;
      long_stops += event.stop_seconds == kLongStopSeconds ? 1 : 0;
      if (event.stop_seconds > 0) {
        EXPECT_NE(event.role, COORDINATOR);
      } else {
        killed.insert(ChaosText(event));
      }
    }
    EXPECT_EQ(short_stops, 1) << seed;
    EXPECT_EQ(long_stops, 1) << seed;
  }
  EXPECT_EQ(killed.size(), 9u) << "two of each role, and the coordinator";
  EXPECT_EQ(killed.count("kills coordinator"), 1u);
}

TEST(ChaosPlan, DrawsKillsAtRandomMomentsFromTheSeed) {
  const auto text_of = [](uint64_t seed) {
    std::string text;
    for (const ChaosEvent& event : PlanRandomKills(TwoOfEach(), 100, 3, seed)) {
      text += std::to_string(event.wait_seconds) + " " + ChaosText(event) + "\n";
    }
    return text;
  };
  EXPECT_EQ(text_of(7), text_of(7));
  EXPECT_NE(text_of(7), text_of(8));
}

TEST(ChaosPlan, KillsEveryProcessAtMomentsOfTheMeanDistance) {
  const std::vector<ChaosEvent> events = PlanRandomKills(TwoOfEach(), 2000, 3, 1);
  ASSERT_EQ(events.size(), 2000u);
  std::set<std::string> killed;
  double sum = 0;
  int short_waits = 0;
  for (const ChaosEvent& event : events) {
    EXPECT_EQ(event.stop_seconds, 0);
    EXPECT_GE(event.wait_seconds, 0);
    sum += event.wait_seconds;
    short_waits += event.wait_seconds < 0.3 ? 1 : 0;
    killed.insert(ChaosText(event));
  }
  EXPECT_NEAR(sum / 2000, 3, 0.3);
  EXPECT_NEAR(short_waits, 2000 * 0.095, 50) << "1 - exp(-0.1) of them hit a life that begins";
  EXPECT_EQ(killed.size(), 9u) << "two of each role, and the coordinator";
}

}  // namespace
}  // namespace satrap
