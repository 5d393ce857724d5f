// Tests a RankEngine in an endless run: data comes now and then, validations are due by the clock,
// and a wish ends the run.

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/rank/testing/fake_cluster.h"
#include "nn_worker/rank/testing/rank_engine_testing.h"

namespace satrap {
namespace {

class RankEngineEndlessTest : public testing::Test {
 protected:
  // Queues one part of one sample. The rank that first requests a part gets it.
  void PutPart(FakeCluster* cluster) { cluster->Put(0, TrainPart(next_seq_++, 1, 1)); }
  // Queues a part every `every_ms` for `ms` of simulated time.
  void Feed(FakeCluster* cluster, int64_t ms, int64_t every_ms) {
    for (int64_t at = 0; at < ms; at += every_ms) {
      PutPart(cluster);
      cluster->RunFor(every_ms);
    }
  }
  uint64_t next_seq_ = 0;
};

TEST_F(RankEngineEndlessTest, WithoutDataRanksMakeAFewStepsASecond) {
  FakeCluster cluster(Hybrid(2), 1);  // idle_step_ms = 50
  cluster.Start();
  cluster.RunFor(2000);
  const size_t before = cluster.steps.size();
  cluster.RunFor(10000);
  EXPECT_LE(cluster.steps.size() - before, 25u);
  EXPECT_GE(cluster.steps.size() - before, 20u) << "a stop or a cut must not wait for data";
}

TEST_F(RankEngineEndlessTest, PartsThatEndAQuietTimeAreTrainedAtOnce) {
  FakeCluster cluster(Hybrid(2, 1), 1);
  cluster.Start();
  cluster.RunFor(10000);
  PutPart(&cluster);
  PutPart(&cluster);
  cluster.RunFor(10);
  EXPECT_EQ(cluster.pushes.size(), 2u);
}

TEST_F(RankEngineEndlessTest, AfterAQuietTimeARankWithoutAPartJoinsAsSoonAsBefore) {
  FakeCluster cluster(Hybrid(2, 1), 1);
  cluster.Start();
  cluster.RunFor(10000);
  const size_t before = cluster.steps.size();
  while (cluster.steps.size() == before) cluster.RunFor(1);
  // An empty step has just ended, so the next empty step is due only after the longest interval.
  PutPart(&cluster);
  PutPart(&cluster);
  cluster.RunFor(10);
  ASSERT_EQ(cluster.pushes.size(), 2u);
  PutPart(&cluster);
  cluster.RunFor(60);
  EXPECT_EQ(cluster.pushes.size(), 3u);
}

TEST_F(RankEngineEndlessTest, AStopEndsAQuietRun) {
  FakeCluster cluster(Hybrid(2), 1);
  cluster.End(TEST_STREAM, 0);
  cluster.End(VALID_STREAM, 0);
  cluster.Start();
  Feed(&cluster, 1000, 100);
  cluster.RunFor(60000);
  cluster.rank(1)->RequestStop();
  cluster.RunFor(2000);
  ASSERT_EQ(cluster.results.size(), 2u);
  EXPECT_EQ(cluster.results[0].samples(), 10u);
}

TEST_F(RankEngineEndlessTest, AWishEndsItWithACutThatTheNextGenerationGoesOnFrom) {
  FakeCluster cluster(Hybrid(2), 1);
  cluster.Start();
  Feed(&cluster, 1000, 100);
  cluster.RunFor(60000);
  CutWish wish;
  wish.set_number(1);
  wish.set_leave(true);
  cluster.rank(0)->RequestCut(wish);
  cluster.RunFor(2000);
  EXPECT_EQ(cluster.phases.back(), "leaving");
  ASSERT_EQ(cluster.cuts.size(), 1u);
  const CutPlan& plan = cluster.cuts[0].plan;
  EXPECT_EQ(plan.position.epoch(), 0u);
  EXPECT_EQ(plan.position.next(), RunPosition::RESUME);

  RankOptions options = Hybrid(1);
  options.position = plan.position;
  FakeCluster later(options, 1);
  later.Start();
  Feed(&later, 1000, 100);
  EXPECT_TRUE(later.results.empty()) << "the only epoch is not over";
  EXPECT_EQ(later.pushes.size(), 10u);
}

TEST_F(RankEngineEndlessTest, ByTheClockAValidationComesSoLongAfterTheEndOfTheLast) {
  RankOptions options = Hybrid(2);
  options.evaluation.set_every_seconds(1);
  FakeCluster cluster(options, 1);
  for (int pass = 0; pass < 9; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 2);
  cluster.Start();
  std::vector<int64_t> ends_ms;
  for (int64_t ms = 0; ms < 5000; ms += 10) {
    PutPart(&cluster);
    cluster.RunFor(10);
    while (ends_ms.size() < cluster.evaluations.size()) ends_ms.push_back(ms);
  }
  ASSERT_GE(ends_ms.size(), 4u);
  for (size_t i = 0; i < ends_ms.size(); ++i) {
    const int64_t since = ends_ms[i] - (i == 0 ? 0 : ends_ms[i - 1]);
    EXPECT_GE(since, 990) << i;
    EXPECT_LE(since, 1200) << i;
  }
}

TEST_F(RankEngineEndlessTest, ByTheClockNothingIsValidatedTwiceWhileNoDataComes) {
  RankOptions options = Hybrid(2);
  options.evaluation.set_every_seconds(1);
  FakeCluster cluster(options, 1);
  for (int pass = 0; pass < 9; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 2);
  cluster.Start();
  cluster.RunFor(5000);
  EXPECT_TRUE(cluster.evaluations.empty()) << "nothing was trained";
  PutPart(&cluster);
  cluster.RunFor(60000);
  EXPECT_EQ(cluster.evaluations.size(), 1u);
}

TEST_F(RankEngineEndlessTest, AValidationByStepsMovesTheNextOneByTheClock) {
  RankOptions options = Hybrid(1, 1);
  options.evaluation.set_every_seconds(1);
  options.evaluation.set_every_steps(8);  // after 800 ms
  FakeCluster cluster(options, 1);
  for (int pass = 0; pass < 9; ++pass) cluster.PutEpoch(VALID_STREAM, pass, 2);
  cluster.Start();
  Feed(&cluster, 1700, 100);
  std::vector<uint64_t> steps;
  for (const EvaluationEvent& event : cluster.evaluations) steps.push_back(event.steps);
  EXPECT_EQ(steps, (std::vector<uint64_t>{8, 16}));
  // Without data the run does not reach step 24, so the next validation comes by the clock.
  PutPart(&cluster);
  cluster.RunFor(3000);
  ASSERT_EQ(cluster.evaluations.size(), 3u);
  EXPECT_EQ(cluster.evaluations[2].steps, 18u);
}

TEST_F(RankEngineEndlessTest, WithoutAValidationSetTheClockAsksForNothing) {
  RankOptions options = Hybrid(2);
  options.has_valid = false;
  options.evaluation.set_every_seconds(1);
  FakeCluster cluster(options, 1);
  cluster.Start();
  Feed(&cluster, 5000, 100);
  EXPECT_TRUE(cluster.evaluations.empty());
  EXPECT_EQ(cluster.pushes.size(), 50u);
  EXPECT_EQ(cluster.phases, std::vector<std::string>{"training"});
}

}  // namespace
}  // namespace satrap
