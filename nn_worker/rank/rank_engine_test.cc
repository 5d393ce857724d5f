#include "nn_worker/rank/rank_engine.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn_worker/rank/testing/fake_cluster.h"
#include "nn_worker/rank/testing/rank_engine_testing.h"

namespace satrap {
namespace {

// The names "E.0.i.0" of the parts that PutEpoch queues if it is called for `epochs` epochs of
// `parts` parts each.
std::multiset<std::string> PartsOfEpochs(int epochs, int parts) {
  std::multiset<std::string> names;
  for (int e = 0; e < epochs; ++e) {
    for (int i = 0; i < parts; ++i) names.insert(absl::StrCat(e, ".0.", i, ".0"));
  }
  return names;
}

TEST(RankEngineHybridTest, TrainsEveryPartOnceAndFinishes) {
  FakeCluster cluster(Hybrid(1), 1);
  cluster.PutEpoch(TRAIN_STREAM, 0, 5);
  cluster.PutEpoch(TEST_STREAM, 0, 3);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_TRUE(cluster.failures.empty());
  EXPECT_EQ(cluster.PushedParts(), PartsOfEpochs(1, 5));
  EXPECT_EQ(cluster.CountedSteps(), Numbers(5));
  EXPECT_EQ(cluster.scored.size(), 3u);
  ASSERT_EQ(cluster.results.size(), 1u);
  EXPECT_EQ(cluster.results[0].steps(), 5u);
  EXPECT_EQ(cluster.results[0].samples(), 5u);
  EXPECT_EQ(cluster.results[0].test().samples(), 3u);
}

TEST(RankEngineHybridTest, UnevenPartsAmongRanksAllCount) {
  FakeCluster cluster(Hybrid(3), 2);
  cluster.PutEpoch(TRAIN_STREAM, 0, 7);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.PushedParts(), PartsOfEpochs(1, 7));
  for (const RunResult& result : cluster.results) {
    EXPECT_EQ(result.samples(), 7u);
    EXPECT_EQ(result.steps(), cluster.results[0].steps());
  }
}

TEST(RankEngineHybridTest, EachPushCarriesItsStepsNumberAndNormalizer) {
  FakeCluster cluster(Hybrid(2, 1), 1);
  cluster.Put(0, TrainPart(0, 3, 3));
  cluster.Put(0, TrainPart(1, 1, .5));
  cluster.End(TRAIN_STREAM, 0);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.pushes.size(), 2u);
  for (const auto& push : cluster.pushes) {
    EXPECT_EQ(push.step.step(), 0u);
    EXPECT_EQ(push.step.normalizer(), 3.5f);
    EXPECT_TRUE(push.step.finite());
    EXPECT_TRUE(push.has_gradients);
  }
}

TEST(RankEngineHybridTest, AStepOfFewerSamplesThanTheGlobalBatchIsNormalisedAsIfItWereFull) {
  FakeCluster cluster(Hybrid(2, 1), 1);
  cluster.global_batch_size = 16;
  cluster.Put(0, TrainPart(0, 3, 3));
  cluster.Put(0, TrainPart(1, 1, .5));
  cluster.End(TRAIN_STREAM, 0);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.pushes.size(), 2u);
  for (const auto& push : cluster.pushes) EXPECT_EQ(push.step.normalizer(), 3.5f * 16 / 4);
}

TEST(RankEngineHybridTest, HoldsOnePartAtATimeUntilTheWarmUpOfStalenessIsOver) {
  RankOptions options = Hybrid(2, 3);
  options.staleness_warmup_steps = 4;
  FakeCluster cluster(options, 1);
  cluster.PutEpoch(TRAIN_STREAM, 0, 40);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_GT(cluster.staleness.size(), 8u);
  const std::vector<int> first(cluster.staleness.begin(), cluster.staleness.begin() + 4);
  EXPECT_EQ(first, std::vector<int>(4, 0));
  EXPECT_EQ(*std::max_element(cluster.staleness.begin(), cluster.staleness.end()), 2);
}

TEST(RankEngineHybridTest, TheNextPartIsPreparedWhileAStepRuns) {
  FakeCluster cluster(Hybrid(2, 3), 1);
  cluster.PutEpoch(TRAIN_STREAM, 0, 40);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_GT(cluster.prepared_during_steps, 0);
}

TEST(RankEngineSyncTest, AClippedStepEndsWithTheNormThatItsPushBrings) {
  FakeCluster cluster(Sync(2, 1), 1);
  cluster.dense_squares = 8;
  cluster.not_finite_steps = {1};
  cluster.PutOrderedEpoch(0, {4});
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_TRUE(cluster.failures.empty());
  EXPECT_EQ(cluster.CountedSteps(), Numbers(4));
  ASSERT_EQ(cluster.pushes.size(), 8u);
  for (const auto& push : cluster.pushes) {
    EXPECT_EQ(push.step.dense_squares(), push.step.step() == 1 ? 0 : 8);
  }
  // FakeTrainer checks that each rank ends a step before it joins the next.
  EXPECT_EQ(cluster.ended_steps, std::vector<double>(6, 16));
  EXPECT_EQ(cluster.norms, std::vector<double>(3, 4));
  for (const RunResult& result : cluster.results) {
    EXPECT_EQ(result.gradient_norms().steps(), 3u);
    EXPECT_EQ(result.gradient_norms().sum(), 12);
    EXPECT_EQ(result.gradient_norms().last(), 4);
  }
}

TEST(RankEngineSyncTest, ALossScaleThatAClippedStepLeavesIsInTheNextCut) {
  RankOptions options = Sync(1, 1);
  options.checkpoint.set_every_steps(2);
  FakeCluster cluster(options, 1);
  cluster.dense_squares = 8;
  cluster.PutOrderedEpoch(0, {3});
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_FALSE(cluster.cuts.empty());
  EXPECT_EQ(cluster.cuts[0].plan.position.loss_scale().scale(), 8);
}

// With one permit, a rank requests the next part only after the push of the last part has been
// answered.
TEST(RankEngineSyncTest, NoPartIsThereToBePreparedWhileAStepRuns) {
  FakeCluster cluster(Sync(2, 1), 1);
  cluster.PutOrderedEpoch(0, {20});
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.CountedSteps(), Numbers(20));
  EXPECT_EQ(cluster.prepared_during_steps, 0);
}

TEST(RankEngineHybridTest, AStepOfWeightZeroIsAcknowledgedAndDoesNotCount) {
  FakeCluster cluster(Hybrid(1, 1), 1);
  cluster.Put(0, TrainPart(0, 4, 0));
  cluster.Put(0, TrainPart(1, 4, 4));
  cluster.End(TRAIN_STREAM, 0);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.acks, std::vector<std::string>{"0.0.0.0"});
  ASSERT_EQ(cluster.pushes.size(), 1u);
  EXPECT_EQ(cluster.pushes[0].step.step(), 0u);
  EXPECT_EQ(cluster.results[0].steps(), 1u);
}

TEST(RankEngineHybridTest, AnEmptyPartInAStepWithWeightIsPushed) {
  FakeCluster cluster(Hybrid(2, 1), 1);
  cluster.Put(0, TrainPart(0, 0, 0));
  cluster.Put(0, TrainPart(1, 4, 4));
  cluster.End(TRAIN_STREAM, 0);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.PushedParts(), PartsOfEpochs(1, 2));
  EXPECT_TRUE(cluster.acks.empty());
}

TEST(RankEngineHybridTest, AStepThatIsNotFiniteCountsAndIsPushedWithoutGradients) {
  FakeCluster cluster(Hybrid(1, 1), 1);
  cluster.not_finite_steps = {1};
  cluster.PutEpoch(TRAIN_STREAM, 0, 3);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.CountedSteps(), Numbers(3));
  EXPECT_FALSE(cluster.pushes[1].step.finite());
  EXPECT_FALSE(cluster.pushes[1].has_gradients);
  EXPECT_TRUE(cluster.pushes[2].step.finite());
  EXPECT_EQ(cluster.results[0].skipped_steps(), 1u);
}

TEST(RankEngineHybridTest, AStepWithALargeGradientIsCountedAndPushedWithItsGradients) {
  FakeCluster cluster(Hybrid(1, 1), 1);
  cluster.large_steps = {1};
  cluster.PutEpoch(TRAIN_STREAM, 0, 3);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_TRUE(cluster.pushes[1].step.finite());
  EXPECT_TRUE(cluster.pushes[1].has_gradients);
  EXPECT_EQ(cluster.results[0].skipped_steps(), 0u);
  EXPECT_EQ(cluster.results[0].large_gradient_steps(), 1u);
}

TEST(RankEngineHybridTest, TooManySkippedStepsInARowEndTheRunOnEveryRank) {
  RankOptions options = Hybrid(2, 1);
  options.max_skipped_steps_in_a_row = 3;
  FakeCluster cluster(options, 1);
  cluster.not_finite_steps = {1, 2, 4, 5, 6, 7};
  cluster.PutEpoch(TRAIN_STREAM, 0, 40);
  ASSERT_TRUE(cluster.StartAndRun());
  cluster.RunFor(60000);
  EXPECT_EQ(cluster.CountedSteps(), Numbers(7));
  ASSERT_EQ(cluster.failures.size(), 2u);
  for (const absl::Status& failure : cluster.failures) {
    EXPECT_EQ(
        failure.message(),
        "training diverged: the gradients of 3 steps in a row, up to step 7 of epoch 1, were "
        "infinite or NaN, so none of these steps changed the model. Lower the learning rates, "
        "scale numeric columns with very large values, or raise max_skipped_steps_in_a_row "
        "(0: no limit)");
  }
}

TEST(RankEngineHybridTest, WithoutALimitSkippedStepsNeverEndTheRun) {
  FakeCluster cluster(Hybrid(1, 1), 1);  // max_skipped_steps_in_a_row = 0
  for (uint64_t step = 0; step < 20; ++step) cluster.not_finite_steps.insert(step);
  cluster.PutEpoch(TRAIN_STREAM, 0, 20);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_TRUE(cluster.failures.empty());
  ASSERT_EQ(cluster.results.size(), 1u);
  EXPECT_EQ(cluster.results[0].skipped_steps(), 20u);
}

TEST(RankEngineHybridTest, ARankWithoutAPartJoinsAfterAWhileAndNotBefore) {
  FakeCluster cluster(Hybrid(2, 1), 1);  // idle_step_ms = 50
  cluster.Put(0, TrainPart(0, 1, 1));
  cluster.Start();
  cluster.RunFor(49);
  EXPECT_TRUE(cluster.steps.empty());
  cluster.RunFor(2);
  ASSERT_EQ(cluster.steps.size(), 1u);
  EXPECT_EQ(cluster.steps[0].weight, 1);
  EXPECT_EQ(cluster.steps[0].idle_ranks, 0);
}

TEST(RankEngineHybridTest, EpochsFollowEachOther) {
  RankOptions options = Hybrid(2);
  options.epochs = 3;
  FakeCluster cluster(options, 2);
  for (int e = 0; e < 3; ++e) cluster.PutEpoch(TRAIN_STREAM, e, 4);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.PushedParts(), PartsOfEpochs(3, 4));
  for (size_t i = 0; i < cluster.pushes.size(); ++i) {
    EXPECT_EQ(cluster.pushes[i].part[0], static_cast<char>('0' + i / 4)) << i;
  }
}

TEST(RankEngineHybridTest, AMaximumOfStepsEndsTrainingWithWhatIsHeld) {
  RankOptions options = Hybrid(1, 3);
  options.max_steps = 5;
  FakeCluster cluster(options, 1);
  cluster.PutEpoch(TRAIN_STREAM, 0, 100);
  cluster.PutEpoch(TEST_STREAM, 0, 2);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_GE(cluster.results[0].steps(), 5u);
  EXPECT_LE(cluster.results[0].steps(), 7u);
  EXPECT_EQ(cluster.results[0].test().samples(), 2u);
}

TEST(RankEngineHybridTest, ARequestedStopEndsAllRanksInTheSameStep) {
  FakeCluster cluster(Hybrid(3), 2);
  cluster.PutEpoch(TRAIN_STREAM, 0, 100000);
  cluster.PutEpoch(TEST_STREAM, 0, 2);
  cluster.executor.PostAfter(0, [&] { cluster.rank(2)->RequestStop(); });
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.results.size(), 3u);
  EXPECT_LT(cluster.results[0].steps(), 100u);
  for (const RunResult& result : cluster.results) {
    EXPECT_EQ(result.steps(), cluster.results[0].steps());
  }
}

TEST(RankEngineHybridTest, AStopRaisedWhileAllAreIdleIsHonouredThere) {
  RankOptions options = Hybrid(1);
  options.epochs = 2;
  FakeCluster cluster(options, 1);
  cluster.End(TRAIN_STREAM, 0);  // the first step finds all idle
  cluster.PutEpoch(TRAIN_STREAM, 1, 10);
  cluster.End(TEST_STREAM, 0);
  cluster.rank(0)->RequestStop();
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.results.size(), 1u);
  EXPECT_EQ(cluster.results[0].steps(), 0u);
}

TEST(RankEngineHybridTest, AnErrorOfAWorkerIsToldOnceAndEndsEverything) {
  FakeCluster cluster(Hybrid(1), 1);
  cluster.broken_method = "/satrap.EmbeddingWorker/PushGradients";
  cluster.PutEpoch(TRAIN_STREAM, 0, 5);
  ASSERT_TRUE(cluster.StartAndRun());
  cluster.RunFor(60000);
  ASSERT_EQ(cluster.failures.size(), 1u);
  EXPECT_EQ(cluster.failures[0].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(cluster.failures[0].message().find("PushGradients to embedding_worker 0"),
            std::string::npos);
  EXPECT_TRUE(cluster.results.empty());
}

TEST(RankEngineSyncTest, RanksTrainTheirPartsOfEachBatchInTheSameStep) {
  FakeCluster cluster(Sync(3, 2), 2);
  cluster.PutOrderedEpoch(0, {3, 1});
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.CountedSteps(), Numbers(4));
  const std::vector<std::string> batches = {"0.0.0.", "0.1.0.", "0.0.1.", "0.0.2."};
  for (size_t s = 0; s < 4; ++s) {
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(cluster.steps[s].parts[r], absl::StrCat(batches[s], r));
    }
  }
}

TEST(RankEngineSyncTest, ARankWithoutItsPartDoesNotJoin) {
  FakeCluster cluster(Sync(2, 1), 1);
  FakePart part = TrainPart(0, 1, 1);
  cluster.Put(0, part);
  cluster.Start();
  cluster.RunFor(60000);
  EXPECT_TRUE(cluster.steps.empty());
  part.id.set_part(1);
  part.last_of_lane = true;
  cluster.Put(0, part);
  cluster.RunFor(1);
  EXPECT_EQ(cluster.CountedSteps().size(), 1u);
}

TEST(RankEngineSyncTest, AStepOfWeightZeroLeavesTheNumberToTheNextBatch) {
  FakeCluster cluster(Sync(1, 1), 1);
  cluster.Put(0, TrainPart(0, 0, 0));
  FakePart part = TrainPart(1, 1, 1);
  part.last_of_lane = true;
  cluster.Put(0, part);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.pushes.size(), 1u);
  EXPECT_EQ(cluster.pushes[0].step.step(), 0u);
  EXPECT_EQ(cluster.acks.size(), 1u);
}

TEST(RankEngineSyncTest, AMaximumOfStepsIsExact) {
  RankOptions options = Sync(2, 2);
  options.max_steps = 3;
  FakeCluster cluster(options, 1);
  cluster.PutOrderedEpoch(0, {10, 10});
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.CountedSteps(), Numbers(3));
}

TEST(RankEngineEvaluationTest, HappensEverySoManyStepsAndOnceAtTheEpochsEnd) {
  RankOptions options = Sync(2, 1);
  options.evaluation.set_every_steps(2);
  options.evaluation.set_at_epoch_end(true);
  FakeCluster cluster(options, 2);
  cluster.aucs = {.6, .7};
  cluster.PutOrderedEpoch(0, {4});
  for (int pass = 0; pass < 2; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 3);
  cluster.PutEpoch(TEST_STREAM, 0, 2);
  ASSERT_TRUE(cluster.StartAndRun());
  // The validation after step 4 also serves as that of the epoch's end.
  ASSERT_EQ(cluster.evaluations.size(), 3u);
  EXPECT_EQ(cluster.evaluations[0].steps, 2u);
  EXPECT_EQ(cluster.evaluations[1].steps, 4u);
  EXPECT_EQ(cluster.evaluations[0].values.samples(), 3u);
  EXPECT_EQ(cluster.evaluations[2].stream, TEST_STREAM);
  // The validation after step 4 is a new best, so a cut is taken there. Training then resumes
  // before the epoch ends, and the last cut is taken at the end of training.
  EXPECT_EQ(cluster.saved, (std::vector<std::string>{"2 best", "4 best", "4 last"}));
  EXPECT_EQ(cluster.results[0].best_step(), 4u);
  EXPECT_EQ(cluster.results[0].valid().auc(), .7);
}

TEST(RankEngineEvaluationTest, TheTestSetIsScoredOnTheBestModel) {
  RankOptions options = Sync(2, 1);
  options.evaluation.set_every_steps(1);
  FakeCluster cluster(options, 1);
  cluster.aucs = {.6, .8, .7};
  cluster.PutOrderedEpoch(0, {3});
  for (int pass = 0; pass < 3; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 1);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.saved, (std::vector<std::string>{"1 best", "2 best", "3 last",
                                                     "restored " + cluster.cuts[1].name}));
  EXPECT_EQ(cluster.results[0].model_dir(), cluster.cuts[1].name);
  EXPECT_EQ(cluster.results[1].best_step(), 2u);
  EXPECT_FALSE(cluster.results[0].stopped_early());
}

TEST(RankEngineEvaluationTest, PatienceEndsTrainingOnAllRanks) {
  RankOptions options = Hybrid(2);
  options.epochs = 10;
  options.evaluation.set_at_epoch_end(true);
  options.evaluation.set_patience(2);
  FakeCluster cluster(options, 1);
  cluster.aucs = {.6, .5, .5};
  for (int e = 0; e < 10; ++e) cluster.PutEpoch(TRAIN_STREAM, e, 4);
  for (int pass = 0; pass < 10; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 2);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.results.size(), 2u);
  for (const RunResult& result : cluster.results) {
    EXPECT_TRUE(result.stopped_early());
    EXPECT_EQ(result.samples(), 12u);
  }
}

TEST(RankEngineEvaluationTest, WithoutAValidationSetTheLastCutIsTheModel) {
  RankOptions options = Hybrid(2);
  options.has_valid = false;
  options.evaluation.set_at_epoch_end(true);
  FakeCluster cluster(options, 1);
  cluster.PutEpoch(TRAIN_STREAM, 0, 2);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.saved.size(), 1u);
  EXPECT_EQ(cluster.saved[0], absl::StrCat(cluster.results[0].steps(), " last"));
  EXPECT_EQ(cluster.results[0].model_dir(), cluster.cuts[0].name);
  EXPECT_EQ(cluster.evaluations.size(), 1u);
}

TEST(RankEngineEvaluationTest, ARunThatOnlyScoresMakesNoStep) {
  RankOptions options = Hybrid(2);
  options.train = false;
  FakeCluster cluster(options, 2);
  cluster.PutEpoch(TEST_STREAM, 0, 9);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_TRUE(cluster.steps.empty());
  EXPECT_TRUE(cluster.saved.empty());
  EXPECT_EQ(cluster.results[0].test().samples(), 9u);
}

}  // namespace
}  // namespace satrap
