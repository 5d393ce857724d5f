// Tests that the ranks of a cluster lower their learning rates together on a plateau.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/rank/testing/fake_cluster.h"
#include "nn_worker/rank/testing/rank_engine_testing.h"

namespace satrap {
namespace {

// For each step, the factor of the learning rates that its pushes carry. It is the same on all
// ranks.
std::vector<float> RatesOfSteps(const FakeCluster& cluster) {
  std::map<uint64_t, float> rates;
  for (const FakeRecord::Push& push : cluster.pushes) {
    const auto [at, is_new] = rates.emplace(push.step.step(), push.step.learning_rate_factor());
    EXPECT_EQ(at->second, push.step.learning_rate_factor()) << "step " << push.step.step();
  }
  std::vector<float> by_step;
  for (const auto& [step, rate] : rates) by_step.push_back(rate);
  return by_step;
}

TEST(RankEnginePlateauTest, OnAPlateauAllRanksLowerTheirRatesFromTheNextStepOn) {
  RankOptions options = Sync(2, 1);
  options.evaluation.set_every_steps(2);
  options.evaluation.mutable_reduce_on_plateau()->set_factor(.5);
  FakeCluster cluster(options, 2);
  cluster.aucs = {.6, .5, .7, .7};
  cluster.PutOrderedEpoch(0, {9});
  for (int pass = 0; pass < 4; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 3);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(RatesOfSteps(cluster), (std::vector<float>{1, 1, 1, 1, .5, .5, .5, .5, .25}));
  ASSERT_EQ(cluster.evaluations.size(), 5u);
  EXPECT_EQ(cluster.evaluations[0].learning_rate_factor, 1);
  EXPECT_FALSE(cluster.evaluations[0].reduced);
  EXPECT_EQ(cluster.evaluations[1].learning_rate_factor, .5);
  EXPECT_TRUE(cluster.evaluations[1].reduced);
  EXPECT_FALSE(cluster.evaluations[4].learning_rate_factor.has_value()) << "the test";
}

TEST(RankEnginePlateauTest, InHybridTheRateFallsBetweenStepsToo) {
  RankOptions options = Hybrid(3, 3);
  options.epochs = 4;
  options.evaluation.set_at_epoch_end(true);
  options.evaluation.mutable_reduce_on_plateau()->set_factor(.5);
  FakeCluster cluster(options, 2);
  cluster.aucs = {.6, .5, .7, .6};
  for (uint32_t epoch = 0; epoch < 4; ++epoch) cluster.PutEpoch(TRAIN_STREAM, epoch, 7);
  for (int pass = 0; pass < 4; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 2);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  const std::vector<float> rates = RatesOfSteps(cluster);
  EXPECT_TRUE(std::is_sorted(rates.rbegin(), rates.rend()));
  EXPECT_EQ(std::set<float>(rates.begin(), rates.end()), (std::set<float>{1, .5}));
  for (const FakeRecord::Push& push : cluster.pushes) {
    const uint64_t second = cluster.evaluations[1].steps;
    EXPECT_EQ(push.step.learning_rate_factor(), push.step.step() < second ? 1 : .5f);
  }
}

// This is the schedule of published protocols: rates fall after the first validation without a new
// best, training ends after the second one, and the best model is tested.
TEST(RankEnginePlateauTest, RatesFallBeforePatienceRunsOut) {
  RankOptions options = Sync(1, 1);
  options.epochs = 9;
  options.evaluation.set_at_epoch_end(true);
  options.evaluation.set_patience(2);
  options.evaluation.mutable_reduce_on_plateau();
  FakeCluster cluster(options, 1);
  cluster.aucs = {.6, .5, .7, .6, .65};
  for (uint32_t epoch = 0; epoch < 9; ++epoch) cluster.PutOrderedEpoch(epoch, {1});
  for (int pass = 0; pass < 9; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 2);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(RatesOfSteps(cluster), (std::vector<float>{1, 1, .1f, .1f, .01f}));
  EXPECT_TRUE(cluster.results[0].stopped_early());
  EXPECT_EQ(cluster.results[0].best_step(), 3u);
  EXPECT_EQ(cluster.saved.back(), "restored " + cluster.results[0].model_dir());
}

TEST(RankEnginePlateauTest, ReductionsOfTheRatesGoOnFromACut) {
  RankOptions options = Sync(2, 1);
  options.evaluation.set_every_steps(2);
  options.evaluation.mutable_reduce_on_plateau()->set_factor(.5);
  options.evaluation.mutable_reduce_on_plateau()->set_patience(2);
  options.checkpoint.set_every_steps(5);
  FakeCluster first(options, 1);
  first.aucs = {.7, .6, .6, .6};
  first.PutOrderedEpoch(0, {9});
  for (int pass = 0; pass < 4; ++pass) first.PutEpoch(VALID_STREAM, pass, 2);
  first.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(first.StartAndRun());
  EXPECT_EQ(first.pushes.back().step.learning_rate_factor(), .5);
  // At the cut of step 5, one validation has brought no new best; a second one will lower the
  // rates.
  const auto cut = std::find_if(first.cuts.begin(), first.cuts.end(),
                                [](const FakeCut& cut) { return cut.plan.position.step() == 5; });
  ASSERT_NE(cut, first.cuts.end());
  EXPECT_EQ(cut->plan.position.plateau().ShortDebugString(),
            "factor: 1 best: 0.7 validations_without_best: 1");
  options.position = cut->plan.position;
  FakeCluster second(options, 1);
  second.aucs = {.6, .6};
  second.PutRest(first, *cut);
  ASSERT_TRUE(second.StartAndRun());
  for (const FakeRecord::Push& push : second.pushes) {
    EXPECT_EQ(push.step.learning_rate_factor(), push.step.step() < 6 ? 1 : .5f);
  }
}

}  // namespace
}  // namespace satrap
