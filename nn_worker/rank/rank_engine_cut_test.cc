// Tests cuts of a RankEngine, and engines that begin from cuts. At every cut, FakeCluster checks
// that nothing is outstanding, that all ranks make the same plan, and which parts they have
// released.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn_worker/rank/testing/fake_cluster.h"
#include "nn_worker/rank/testing/rank_engine_testing.h"

namespace satrap {
namespace {

TEST(RankEngineCutTest, AreTakenEverySoManyStepsAndAtTheEnd) {
  RankOptions options = Sync(2, 1);
  options.has_valid = false;
  options.checkpoint.set_every_steps(2);
  FakeCluster cluster(options, 1);
  cluster.cut_writing_ms = 0;
  cluster.PutOrderedEpoch(0, {5});
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.saved, (std::vector<std::string>{"2", "4", "5 last"}));
  EXPECT_EQ(cluster.CountedSteps(), Numbers(5));
  EXPECT_EQ(cluster.cut_ends, 3);
  EXPECT_EQ(cluster.pauses.size(), 2u);
}

TEST(RankEngineCutTest, TrainingGoesOnWhileOneIsWrittenAndNoOtherBeginsMeanwhile) {
  RankOptions options = Sync(2, 1);
  options.has_valid = false;
  options.checkpoint.set_every_steps(1);
  FakeCluster cluster(options, 1, /*delay_us=*/5000);
  cluster.cut_writing_ms = 100;
  cluster.PutOrderedEpoch(0, {40});
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.saved[0], "1");
  EXPECT_GT(cluster.cuts[1].plan.position.step(), 3u);
  EXPECT_LT(cluster.cuts.size(), 20u);
  EXPECT_GT(cluster.cuts.size(), 4u);
}

TEST(RankEngineCutTest, AreTakenByTheClockButNoSoonerThanFourTimesTheLastWriting) {
  RankOptions options = Sync(1, 1);
  options.has_valid = false;
  options.checkpoint.set_every_seconds(1);
  FakeCluster cluster(options, 1, /*delay_us=*/10000);
  cluster.cut_writing_ms = 500;
  cluster.PutOrderedEpoch(0, {1000});
  cluster.End(TEST_STREAM, 0);
  std::vector<int64_t> begun_ms;
  cluster.Start();
  for (int ms = 0; ms < 6000; ms += 10) {
    cluster.RunFor(10);
    if (cluster.cuts.size() > begun_ms.size()) begun_ms.push_back(ms);
  }
  ASSERT_GE(begun_ms.size(), 3u);
  EXPECT_GE(begun_ms[0], 990);
  EXPECT_LE(begun_ms[0], 1200);
  EXPECT_GE(begun_ms[1] - begun_ms[0], 1980);
  EXPECT_LE(begun_ms[1] - begun_ms[0], 2300);
}

TEST(RankEngineCutTest, ARunThatWaitsForDataDoesNotRepeatTheSameCut) {
  RankOptions options = Hybrid(2);
  options.checkpoint.set_every_seconds(1);
  FakeCluster cluster(options, 1);
  cluster.Put(0, TrainPart(0, 1, 1));
  cluster.Start();
  cluster.RunFor(20000);
  EXPECT_EQ(cluster.saved, std::vector<std::string>{"1"});
}

TEST(RankEngineCutTest, AValidationComesFirstAndANewBestIsACutThatIsWaitedFor) {
  RankOptions options = Sync(2, 1);
  options.evaluation.set_every_steps(2);
  options.checkpoint.set_every_steps(2);
  FakeCluster cluster(options, 1);
  cluster.aucs = {.6, .5, .7};
  cluster.cut_writing_ms = 0;
  cluster.PutOrderedEpoch(0, {6});
  for (int pass = 0; pass < 4; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 1);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.saved, (std::vector<std::string>{"2 best", "4", "6 best", "6 last"}));
  const RunPosition& second = cluster.cuts[1].plan.position;
  EXPECT_EQ(second.validated_step(), 4u);
  EXPECT_EQ(second.best().step(), 2u);
  EXPECT_EQ(second.best().cut(), cluster.cuts[0].name);
  EXPECT_EQ(second.best().values().auc(), .6);
  EXPECT_EQ(second.validations_without_best(), 1u);
  EXPECT_EQ(cluster.cuts[2].plan.position.best().cut(), cluster.cuts[2].name);
  EXPECT_EQ(cluster.cuts[3].plan.position.best().cut(), cluster.cuts[2].name);
  EXPECT_EQ(cluster.cuts[3].plan.position.next(), RunPosition::FINISH);
}

TEST(RankEngineCutTest, ABestOneThatIsAbandonedIsBegunAgainWithTheSameRows) {
  RankOptions options = Hybrid(2);
  options.evaluation.set_every_steps(3);
  FakeCluster cluster(options, 1);
  cluster.abandoned_cuts = {1};
  cluster.PutEpoch(TRAIN_STREAM, 0, 20);
  for (int pass = 0; pass < 9; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 1);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_GE(cluster.cuts.size(), 2u);
  const std::string step = absl::StrCat(cluster.cuts[0].plan.position.step());
  EXPECT_EQ(cluster.saved[0], step + " best abandoned");
  EXPECT_EQ(cluster.saved[1], step + " best");
  EXPECT_EQ(cluster.results[0].model_dir(), cluster.cuts[1].name);
}

TEST(RankEngineCutTest, AWishIsFulfilledOnceByACutThatIsWaitedFor) {
  FakeCluster cluster(Hybrid(2), 1);
  cluster.PutEpoch(TRAIN_STREAM, 0, 50);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  CutWish wish;
  wish.set_number(4);
  cluster.rank(0)->RequestCut(wish);
  cluster.rank(0)->RequestCut(wish);
  cluster.rank(1)->RequestCut(wish);  // ignored
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.cuts.size(), 2u);
  EXPECT_EQ(cluster.cuts[0].plan.wish, 4u);
  EXPECT_LE(cluster.cuts[0].plan.position.step(), 4u);
  EXPECT_EQ(cluster.cuts[1].plan.wish, 0u);
}

TEST(RankEngineCutTest, AWishWhoseCutIsAbandonedGetsAnother) {
  FakeCluster cluster(Hybrid(1), 1);
  cluster.abandoned_cuts = {1, 2};
  cluster.PutEpoch(TRAIN_STREAM, 0, 50);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  CutWish wish;
  wish.set_number(1);
  cluster.rank(0)->RequestCut(wish);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.cuts.size(), 4u);
  EXPECT_EQ(cluster.cuts[2].plan.wish, 1u);
  EXPECT_TRUE(cluster.cuts[2].committed);
  EXPECT_EQ(cluster.cuts[3].plan.wish, 0u);
}

TEST(RankEngineCutTest, AfterACutToLeaveNothingIsTrainedAndNothingFinishes) {
  for (const bool ordered : {false, true}) {
    FakeCluster cluster(ordered ? Sync(2, 1) : Hybrid(2), 1);
    if (ordered) {
      cluster.PutOrderedEpoch(0, {50});
    } else {
      cluster.PutEpoch(TRAIN_STREAM, 0, 100);
    }
    cluster.PutEpoch(TEST_STREAM, 0, 1);
    CutWish wish;
    wish.set_number(1);
    wish.set_leave(true);
    cluster.executor.PostAfter(1, [&] { cluster.rank(0)->RequestCut(wish); });
    cluster.Start();
    cluster.RunFor(60000);
    // The wish comes a microsecond after the start, but some runs end before that, with their last
    // cut.
    ASSERT_FALSE(cluster.cuts.empty());
    if (cluster.cuts[0].plan.last) continue;
    EXPECT_EQ(cluster.cuts.size(), 1u);
    EXPECT_TRUE(cluster.cuts[0].plan.leave);
    EXPECT_EQ(cluster.cuts[0].plan.position.next(), RunPosition::RESUME);
    EXPECT_TRUE(cluster.results.empty());
    EXPECT_TRUE(cluster.failures.empty());
    EXPECT_EQ(cluster.phases.back(), "leaving");
    EXPECT_EQ(cluster.cuts[0].released.size(), cluster.pushes.size());
  }
}

TEST(RankEngineCutTest, AWishToLeaveBeforeTheFirstStepLeavesWithTheFirst) {
  FakeCluster cluster(Hybrid(2), 1);
  cluster.PutEpoch(TRAIN_STREAM, 0, 100);
  CutWish wish;
  wish.set_number(1);
  wish.set_leave(true);
  cluster.rank(0)->RequestCut(wish);
  cluster.Start();
  cluster.RunFor(60000);
  ASSERT_EQ(cluster.cuts.size(), 1u);
  EXPECT_TRUE(cluster.cuts[0].plan.leave);
  EXPECT_TRUE(cluster.results.empty());
  EXPECT_LE(cluster.pushes.size(), 4u);
  EXPECT_EQ(cluster.phases.back(), "leaving");
}

TEST(RankEngineCutTest, TheLastSaysFinishHoweverTrainingEnds) {
  for (const std::string end : {"max_steps", "patience", "stop", "data"}) {
    SCOPED_TRACE(end);
    RankOptions options = Hybrid(2);
    options.epochs = 3;
    if (end == "max_steps") options.max_steps = 5;
    if (end == "patience") {
      options.evaluation.set_every_steps(4);
      options.evaluation.set_patience(1);
    }
    FakeCluster cluster(options, 1);
    cluster.aucs = {.7, .6};
    for (int e = 0; e < 3; ++e) cluster.PutEpoch(TRAIN_STREAM, e, 20);
    for (int pass = 0; pass < 9; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 1);
    cluster.PutEpoch(TEST_STREAM, 0, 1);
    if (end == "stop") cluster.rank(1)->RequestStop();
    ASSERT_TRUE(cluster.StartAndRun());
    ASSERT_FALSE(cluster.cuts.empty());
    const CutPlan& last = cluster.cuts.back().plan;
    EXPECT_TRUE(last.last);
    EXPECT_EQ(last.position.next(), RunPosition::FINISH);
    EXPECT_EQ(last.position.step(), cluster.results[0].steps());
    EXPECT_EQ(last.position.epoch(), end == "data" ? 3u : 0u);
    EXPECT_EQ(last.position.stopped_early(), end == "patience");
    for (size_t i = 0; i + 1 < cluster.cuts.size(); ++i) EXPECT_FALSE(cluster.cuts[i].plan.last);
  }
}

TEST(RankEngineCutTest, AFinishedTrainingAsksForNoPartAndTestsTheBestCut) {
  RankOptions options = Sync(2, 2);
  options.position.set_next(RunPosition::FINISH);
  options.position.set_epoch(1);
  options.position.set_step(30);
  options.position.set_samples(60);
  options.position.set_stopped_early(true);
  options.position.mutable_best()->set_step(20);
  options.position.mutable_best()->set_cut("cut_0001_000002");
  options.position.mutable_best()->mutable_values()->set_auc(.75);
  FakeCluster cluster(options, 1);
  cluster.PutEpoch(TEST_STREAM, 0, 3);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_TRUE(cluster.steps.empty());
  EXPECT_EQ(cluster.saved, std::vector<std::string>{"restored cut_0001_000002"});
  ASSERT_EQ(cluster.results.size(), 2u);
  const RunResult& result = cluster.results[0];
  EXPECT_EQ(result.steps(), 30u);
  EXPECT_EQ(result.samples(), 60u);
  EXPECT_EQ(result.best_step(), 20u);
  EXPECT_EQ(result.valid().auc(), .75);
  EXPECT_EQ(result.test().samples(), 3u);
  EXPECT_EQ(result.model_dir(), "cut_0001_000002");
  EXPECT_TRUE(result.stopped_early());
}

TEST(RankEngineCutTest, AFinishedTrainingWhoseCutIsTheBestRestoresNothing) {
  RankOptions options = Hybrid(1);
  options.position.set_next(RunPosition::FINISH);
  options.position.set_step(30);
  FakeCluster cluster(options, 1);
  cluster.PutEpoch(TEST_STREAM, 0, 3);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_TRUE(cluster.saved.empty());
  EXPECT_EQ(cluster.results[0].model_dir(), "");
  EXPECT_EQ(cluster.results[0].best_step(), 30u);
}

TEST(RankEngineCutTest, AJobThatAsksForNoMoreStepsThanTheCutHasEndsWithALastCut) {
  RankOptions options = Hybrid(1);
  options.position.set_step(30);
  options.max_steps = 20;
  FakeCluster cluster(options, 1);
  cluster.PutEpoch(TEST_STREAM, 0, 3);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cluster.saved, std::vector<std::string>{"30 last"});
}

TEST(RankEngineCutTest, AJobThatAsksForNoMoreStepsKeepsTheOrderForAnotherThatDoes) {
  RankOptions options = Sync(2, 2);
  options.position.set_step(30);
  options.position.add_lanes()->set_next_seq(12);
  options.position.add_lanes()->set_next_seq(11);
  options.position.set_lane_turn(1);
  options.max_steps = 20;
  FakeCluster cluster(options, 1);
  cluster.PutEpoch(TEST_STREAM, 0, 3);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.cuts.size(), 1u);
  const RunPosition& position = cluster.cuts[0].plan.position;
  ASSERT_EQ(position.lanes_size(), 2);
  EXPECT_EQ(position.lanes(0).next_seq(), 12u);
  EXPECT_EQ(position.lanes(1).next_seq(), 11u);
  EXPECT_EQ(position.lane_turn(), 1u);
}

TEST(RankEngineCutTest, AnotherNumberOfLanesIsRefused) {
  for (const int lanes : {1, 2}) {
    RankOptions options = Sync(1, 2);
    for (int lane = 0; lane < lanes; ++lane) options.position.add_lanes();
    options.position.set_lane_turn(2);  // a job of two lanes has no lane 2
    FakeCluster cluster(options, 1);
    ASSERT_TRUE(cluster.StartAndRun());
    ASSERT_EQ(cluster.failures.size(), 1u);
    EXPECT_EQ(cluster.failures[0].code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(RankEngineCutTest, TheWarmUpOfStalenessIsOverForGood) {
  RankOptions options = Hybrid(1, 3);
  options.position.set_step(10);
  options.staleness_warmup_steps = 4;
  FakeCluster cluster(options, 1);
  cluster.PutEpoch(TRAIN_STREAM, 0, 9);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.staleness.size(), 9u);
  EXPECT_EQ(cluster.staleness[2], 2);
}

TEST(RankEngineCutTest, TheTimeOfTrainingIsThatOfAllGenerations) {
  RankOptions options = Hybrid(1);
  options.position.set_train_seconds(100);
  FakeCluster cluster(options, 1, /*delay_us=*/10000);
  cluster.PutEpoch(TRAIN_STREAM, 0, 20);
  cluster.PutEpoch(TEST_STREAM, 0, 20);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_GT(cluster.results[0].train_seconds(), 100);
  EXPECT_EQ(cluster.results[0].train_seconds(), cluster.cuts.back().plan.position.train_seconds())
      << "the test pass is no training";
}

TEST(RankEngineCutTest, ThePauseBeginsWithTheDecision) {
  RankOptions options = Hybrid(1, 3);
  options.checkpoint.set_every_steps(5);
  FakeCluster cluster(options, 1, /*delay_us=*/10000);
  cluster.cut_writing_ms = 0;
  cluster.PutEpoch(TRAIN_STREAM, 0, 20);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_FALSE(cluster.pauses.empty());
  // Marking takes no time here, but ranks must still train the parts that they hold and wait for
  // the answers to their pushes.
  for (const double pause : cluster.pauses) EXPECT_GT(pause, 0);
}

TEST(RankEngineCutTest, AWishThatComesWhenAllAreIdleIsFulfilledThere) {
  RankOptions options = Hybrid(2);
  options.epochs = 2;
  FakeCluster cluster(options, 1);
  cluster.End(TRAIN_STREAM, 0);  // the first step finds all idle
  cluster.PutEpoch(TRAIN_STREAM, 1, 10);
  cluster.End(TEST_STREAM, 0);
  CutWish wish;
  wish.set_number(1);
  cluster.rank(0)->RequestCut(wish);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_GE(cluster.cuts.size(), 2u);
  EXPECT_EQ(cluster.cuts[0].plan.wish, 1u);
  EXPECT_EQ(cluster.cuts[0].plan.position.epoch(), 0u);
  EXPECT_EQ(cluster.cuts[0].plan.position.step(), 0u);
}

TEST(RankEngineCutTest, ACutThatCannotBeCommittedEndsTheRunWithItsError) {
  RankOptions options = Hybrid(2);
  options.checkpoint.set_every_steps(3);
  FakeCluster cluster(options, 1);
  cluster.broken_cut = absl::AbortedError("another generation");
  cluster.PutEpoch(TRAIN_STREAM, 0, 50);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_FALSE(cluster.failures.empty());
  EXPECT_EQ(cluster.failures[0].code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(cluster.results.empty());
}

TEST(RankEngineCutTest, PartsOfStepsOfWeightZeroAreConsumed) {
  RankOptions options = Hybrid(1, 1);
  FakeCluster cluster(options, 1);
  cluster.Put(0, TrainPart(0, 4, 0));
  cluster.Put(0, TrainPart(1, 4, 4));
  cluster.End(TRAIN_STREAM, 0);
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.cuts.size(), 1u);
  EXPECT_EQ(cluster.cuts[0].ledger.OfAll().rows, 8u);
}

TEST(RankEngineCutTest, ARecordThatIsTrainedTwiceEndsTheRunForGood) {
  FakeCluster cluster(Hybrid(1, 1), 2);
  FakePart part = TrainPart(0, 4, 4);
  part.id.set_seq(0);
  cluster.Put(0, part);
  part.samples = 3;  // another part of the same block
  part.id.set_epoch(0);
  cluster.Put(0, part);
  cluster.End(TRAIN_STREAM, 0);
  cluster.allow_twice = true;
  ASSERT_TRUE(cluster.StartAndRun());
  ASSERT_EQ(cluster.failures.size(), 1u);
  EXPECT_EQ(cluster.failures[0].code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(cluster.failures[0].message().find("records were trained twice: "), 0u)
      << cluster.failures[0];
}

TEST(RankEngineCutTest, TheTestPassReachesItsKillPointOnce) {
  RankOptions options = Hybrid(1);
  options.evaluation.set_at_epoch_end(true);
  JobConfig job;
  job.add_kill_points()->set_point(KillPoint::RANK_IN_TEST_PASS);
  std::vector<size_t> cuts_by_then;
  FakeCluster* running = nullptr;
  KillPoints kill_points(job, 0, 1, [&] { cuts_by_then.push_back(running->cuts.size()); });
  FakeCluster cluster(options, 1, /*delay_us=*/0, &kill_points);
  running = &cluster;
  cluster.PutEpoch(TRAIN_STREAM, 0, 5);
  cluster.PutEpoch(VALID_STREAM, 0, 1);
  cluster.PutEpoch(TEST_STREAM, 0, 1);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(cuts_by_then, std::vector<size_t>{1});
}

TEST(RankEngineCutTest, AClippedStepReachesItsKillPointBeforeTheNetworksHalf) {
  JobConfig job;
  KillPoint* const point = job.add_kill_points();
  point->set_point(KillPoint::RANK_BETWEEN_HALVES);
  point->set_visit(3);
  std::vector<size_t> ended_by_then;
  FakeCluster* running = nullptr;
  KillPoints kill_points(job, 0, 1, [&] { ended_by_then.push_back(running->ended_steps.size()); });
  FakeCluster cluster(Sync(1, 1), 1, /*delay_us=*/0, &kill_points);
  running = &cluster;
  cluster.dense_squares = 8;
  cluster.PutOrderedEpoch(0, {4});
  cluster.End(TEST_STREAM, 0);
  ASSERT_TRUE(cluster.StartAndRun());
  EXPECT_EQ(ended_by_then, std::vector<size_t>{2});
}

}  // namespace
}  // namespace satrap
