#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/rpc/payload.h"
#include "data_loader/batch/batch_maker.h"
#include "data_loader/batch/batch_maker_testing.h"

namespace satrap {
namespace {

// 42 samples in splits of 16 rows and batches of 8; the first two batches are repeated.
JobConfig Job() {
  JobConfig job;
  SyntheticFormat* synthetic = job.mutable_data()->mutable_synthetic();
  synthetic->set_train_samples(42);
  synthetic->set_numeric_features(0);
  synthetic->add_vocabulary_sizes(1000);
  synthetic->set_interacting_features(0);
  synthetic->set_cycle_batches(2);
  job.mutable_data()->add_features()->set_name("C1");
  job.mutable_data()->set_split_rows(16);
  job.set_global_batch_size(8);
  return job;
}

std::vector<uint64_t> IdsOf(const Part& part) {
  const FeatureIds& ids = part.header.features(0);
  const auto view = rpc::SectionView<uint64_t>(part.payload, ids.ids(), ids.num_ids(), "ids");
  EXPECT_TRUE(view.ok()) << view.status();
  return {view->begin(), view->end()};
}

class CyclingBatchMakerTest : public testing::Test {
 protected:
  void Make(const JobConfig& job) {
    spec_ = *StreamSpec::Make(job, TRAIN_STREAM, &progress_);
    maker_ = NewBatchMaker(spec_);
  }

  ReadProgress progress_{ReadProgress::Options()};
  std::shared_ptr<const StreamSpec> spec_;
  std::unique_ptr<BatchMaker> maker_;
};

TEST_F(CyclingBatchMakerTest, BatchesAreKeptAndCycledThrough) {
  Make(Job());
  const auto batches = RunEpoch(*spec_, maker_.get(), 0);
  ASSERT_EQ(batches.size(), 6u);
  EXPECT_EQ(batches[0][0].payload.data(), batches[2][0].payload.data());
  EXPECT_EQ(batches[1][0].payload.data(), batches[3][0].payload.data());
  EXPECT_NE(batches[0][0].payload.data(), batches[1][0].payload.data());
  const PartDescription& fourth = batches[3][0].header.part();
  EXPECT_EQ(fourth.provenance(0).split(), 1u);
  EXPECT_EQ(fourth.provenance(0).from(), 8u);
  EXPECT_EQ(fourth.provenance(0).to(), 16u);
  EXPECT_EQ(progress_.Snapshot().records(), 42u);
}

TEST_F(CyclingBatchMakerTest, TheLastBatchIsASmallOneOfTheFirstRecordsOfItsKeptOne) {
  JobConfig job = Job();
  job.mutable_nn_worker()->set_replicas(2);
  Make(job);
  const auto batches = RunEpoch(*spec_, maker_.get(), 0);
  ASSERT_EQ(batches.size(), 6u);
  ASSERT_EQ(batches[5].size(), 2u);
  const Part& second = batches[5][1];
  EXPECT_EQ(second.header.part().samples(), 1u);
  EXPECT_EQ(second.header.part().first_sample(), 1u);
  EXPECT_EQ(second.header.part().provenance(0).split(), 2u);
  EXPECT_EQ(second.header.part().provenance(0).from(), 9u);
  EXPECT_EQ(second.header.part().provenance(0).to(), 10u);
  // Batch 5 repeats batch 1, and its second record is the second record of that batch's first part.
  EXPECT_EQ(IdsOf(second), (std::vector<uint64_t>{IdsOf(batches[1][0])[1]}));
}

TEST_F(CyclingBatchMakerTest, OrderedTheLastBatchOfEachEpochSaysSoAndKeptOnesDoNot) {
  JobConfig job = Job();
  job.set_mode(JobConfig::SYNC);
  job.mutable_data()->mutable_synthetic()->set_train_samples(40);
  Make(job);
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    const auto batches = RunEpoch(*spec_, maker_.get(), epoch);
    ASSERT_EQ(batches.size(), 5u);
    for (size_t b = 0; b < batches.size(); ++b) {
      const PutBatchHeader& header = batches[b][0].header;
      EXPECT_EQ(header.part().last_of_lane(), b == 4);
      EXPECT_EQ(header.epoch(), epoch);
      EXPECT_EQ(header.part().id().epoch(), epoch);
    }
  }
}

TEST_F(CyclingBatchMakerTest, ALaneWithoutSplitsHasOneBatchOfNoSamples) {
  JobConfig job = Job();
  job.set_mode(JobConfig::SYNC);
  job.mutable_nn_worker()->set_replicas(2);
  Make(job);
  const auto batches = RunEpoch(*spec_, maker_.get(), 0, 3, 1);  // there are three splits
  ASSERT_EQ(batches.size(), 1u);
  ASSERT_EQ(batches[0].size(), 2u);
  EXPECT_TRUE(batches[0][1].header.part().last_of_lane());
  EXPECT_EQ(batches[0][1].header.part().samples(), 0u);
  job.set_mode(JobConfig::HYBRID);
  Make(job);
  EXPECT_TRUE(RunEpoch(*spec_, maker_.get(), 0, 3, 1).empty()) << "unordered";
}

}  // namespace
}  // namespace satrap
