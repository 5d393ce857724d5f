// Tests what a RankEngine finds out about the labels that it trains on.

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/rank/testing/fake_cluster.h"
#include "nn_worker/rank/testing/rank_engine_testing.h"

namespace satrap {
namespace {

// There are epochs of 120 steps of 100 records each, which is enough that chance makes only small
// differences.
constexpr int kSteps = 120;
constexpr uint32_t kRecords = 100;

RankOptions Options() {
  RankOptions options = Sync(1, 1);
  options.epochs = 2;
  options.has_valid = false;
  options.has_test = false;
  options.checkpoint.set_every_steps(50);
  return options;
}

void PutEpochs(FakeCluster* cluster) {
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (uint64_t seq = 0; seq < kSteps; ++seq) {
      FakePart part = TrainPart(seq, kRecords, kRecords);
      part.id.set_epoch(epoch);
      part.last_of_lane = seq + 1 == kSteps;
      cluster->Put(0, part);
    }
    cluster->End(TRAIN_STREAM, epoch);
  }
}

// The second epoch repeats the records of the first, so its labels do not count, although they
// differ here.
double FallsInTheFirstEpoch(uint64_t step) { return step < 60 ? .4 : step < kSteps ? .2 : .9; }

TEST(RankEngineLabelsTest, ALabelRateThatMovesInEpoch0IsInTheResult) {
  FakeCluster cluster(Options(), 1);
  cluster.label_rate = FallsInTheFirstEpoch;
  PutEpochs(&cluster);
  ASSERT_TRUE(cluster.StartAndRun());
  const RunResult& result = cluster.results.at(0);
  EXPECT_EQ(result.steps(), 2u * kSteps);
  EXPECT_NEAR(result.train_label_rate(), .3, 1e-9);
  EXPECT_NEAR(result.moving_label_rate().lowest(), .2, 1e-9);
  EXPECT_NEAR(result.moving_label_rate().highest(), .4, 1e-9);
  EXPECT_EQ(result.moving_label_rate().windows(), 60u);
}

TEST(RankEngineLabelsTest, ARunThatGoesOnFromACutKnowsTheRecordsBeforeIt) {
  FakeCluster first(Options(), 1);
  first.label_rate = FallsInTheFirstEpoch;
  PutEpochs(&first);
  ASSERT_TRUE(first.StartAndRun());
  const FakeCut& cut = first.cuts.at(0);
  ASSERT_EQ(cut.plan.position.step(), 50u);
  RankOptions options = Options();
  options.position = cut.plan.position;
  FakeCluster second(options, 1);
  second.label_rate = FallsInTheFirstEpoch;
  second.PutRest(first, cut);
  ASSERT_TRUE(second.StartAndRun());
  EXPECT_EQ(second.results.at(0).moving_label_rate().SerializeAsString(),
            first.results.at(0).moving_label_rate().SerializeAsString());
}

TEST(RankEngineLabelsTest, ARateThatStaysAndATopicTellNothing) {
  FakeCluster even(Options(), 1);
  even.label_rate = [](uint64_t) { return .3; };
  PutEpochs(&even);
  ASSERT_TRUE(even.StartAndRun());
  EXPECT_FALSE(even.results.at(0).has_moving_label_rate());
  EXPECT_TRUE(even.results.at(0).has_train_label_rate());

  RankOptions options = Options();
  options.traits.has_record_order = false;
  FakeCluster topic(options, 1);
  topic.label_rate = FallsInTheFirstEpoch;
  PutEpochs(&topic);
  ASSERT_TRUE(topic.StartAndRun());
  EXPECT_FALSE(topic.results.at(0).has_moving_label_rate());

  FakeCluster numbers(Options(), 1);
  PutEpochs(&numbers);
  ASSERT_TRUE(numbers.StartAndRun());
  EXPECT_FALSE(numbers.results.at(0).has_train_label_rate());
}

}  // namespace
}  // namespace satrap
