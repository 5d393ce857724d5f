#include <set>

#include "gtest/gtest.h"
#include "tests/simulation/sim_oracle.h"
#include "tests/simulation/sim_world.h"

namespace satrap::simulation {
namespace {

// A failing seed is replayed by `bazel run //tests/simulation:simulate -- SEED`.
void ExpectAsPromised(uint64_t first_seed, uint64_t last_seed) {
  for (uint64_t seed = first_seed; seed <= last_seed; ++seed) {
    const WorldShape shape = WorldShape::Draw(seed);
    const WorldResult result = RunWorld(shape);
    for (const std::string& violation : result.violations) {
      ADD_FAILURE() << violation << "\n  in " << Describe(shape);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Simulation, KeepsItsPromisesUnderSeeds1To500) { ExpectAsPromised(1, 500); }
TEST(Simulation, KeepsItsPromisesUnderSeeds501To1000) { ExpectAsPromised(501, 1000); }
TEST(Simulation, KeepsItsPromisesUnderSeeds1001To1500) { ExpectAsPromised(1001, 1500); }
TEST(Simulation, KeepsItsPromisesUnderSeeds1501To2000) { ExpectAsPromised(1501, 2000); }

TEST(Simulation, TheSameSeedGivesTheSameRun) {
  const WorldShape shape = WorldShape::Draw(17);
  const WorldResult once = RunWorld(shape), again = RunWorld(shape);
  EXPECT_EQ(once.events, again.events);
  EXPECT_EQ(once.simulated_us, again.simulated_us);
  EXPECT_GT(once.events, 0);
}

TEST(Simulation, TheSeedsReachBothModesAndEachNumberOfRoles) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const WorldShape shape = WorldShape::Draw(seed);
    seen.insert(shape.ordered ? "sync" : "hybrid");
    seen.insert("loaders " + std::to_string(shape.loaders));
    seen.insert("workers " + std::to_string(shape.workers));
    seen.insert("pss " + std::to_string(shape.ps));
    seen.insert("ranks " + std::to_string(shape.ranks));
    seen.insert("lanes " + std::to_string(shape.lanes));
    seen.insert("staleness " + std::to_string(shape.max_staleness));
    seen.insert(shape.has_non_finite_steps ? "some steps not finite" : "all steps finite");
    seen.insert(shape.max_steps > 0 ? "max_steps" : "all steps");
  }
  EXPECT_EQ(seen.size(), 2u + 2 + 2 + 2 + 3 + 3 + 3 + 2 + 2);
}

// The number of seeds up to `limit` until a planted fault is found; 0 if it is not.
uint64_t SeedsToFind(Plant plant, uint64_t limit, bool ordered) {
  for (uint64_t seed = 1; seed <= limit; ++seed) {
    const WorldShape shape = WorldShape::Draw(seed);
    if (shape.ordered == ordered && !RunWorld(shape, plant).violations.empty()) return seed;
  }
  return 0;
}

TEST(Simulation, FindsAWindowThatForgets) {
  EXPECT_GT(SeedsToFind(Plant::kForgetfulWindow, 100, false), 0u);
  EXPECT_GT(SeedsToFind(Plant::kForgetfulWindow, 100, true), 0u);
}

TEST(Simulation, FindsALookupThatCreatesRows) {
  EXPECT_GT(SeedsToFind(Plant::kLookupCreatesRows, 100, false), 0u);
}

TEST(Simulation, FindsRoomThatIsCountedPerWorkerInsteadOfPerLane) {
  EXPECT_GT(SeedsToFind(Plant::kRoomPerWorker, 300, true), 0u);
}

TEST(SimOracle, TrainsABatchAsWorkedOutByHand) {
  WorldShape shape;
  shape.ordered = true;
  shape.split_rows = {{1}, {}, {}};
  for (shape.seed = 0;; ++shape.seed) {
    const SimSample sample = MakeSample(shape, TRAIN_STREAM, 0, 0);
    if (sample.weight > 0 && sample.several.empty()) break;
  }
  const SimSample sample = MakeSample(shape, TRAIN_STREAM, 0, 0);
  const OracleResult result = TrainOracle(shape, 100);
  EXPECT_EQ(result.steps, 1u);
  ASSERT_EQ(result.rows.size(), 1u);
  // Values begin at 1; weight cancels: 1 - 0.5 * (drawn + 0.25 * 1).
  const double drawn = SampleGradient(sample, 0, 2, 0, 0) / sample.weight;
  EXPECT_NEAR(result.rows.at(SingleKey(sample.single))[2], 1 - 0.5 * (drawn + 0.25), 1e-6);
}

}  // namespace
}  // namespace satrap::simulation
