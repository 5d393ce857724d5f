// Tests how the rules of segments (L2, clipping, CowClip, batch scaling) treat the parts of a step.

#include <map>
#include <vector>

#include "common/numeric/hash.h"
#include "common/rpc/hot_methods.h"
#include "embedding_ps/testing/ps_engine_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// Rank 0 has key 7 in 1 sample of a step, and rank 1 has it in 3. Their gradients are equal.
constexpr uint32_t kCounts[] = {1, 3};
JobConfig CowClipJob(JobConfig::Mode mode, int num_ps) {
  JobConfig job = PsTestJob(mode, 2, num_ps);
  for (SegmentConfig& segment : *job.mutable_tables(0)->mutable_segments()) {
    segment.mutable_initializer()->mutable_constant()->set_value(0);
    segment.mutable_cow_clip()->set_floor(0.25f);
  }
  return job;
}

// The limit applies to the sum over the global batch: 4 samples * .25. It must not matter which
// part counts the samples: all parts have the candidates, but only the first part counts each
// candidate as a sample.
TEST(PsEngineRulesTest, CowClipClipsTheSumOfAnOrderedStepOnce) {
  for (const std::vector<uint32_t>& counts : {std::vector<uint32_t>{1, 3}, {4, 0}}) {
    Pss pss(CowClipJob(JobConfig::SYNC, 1));
    Answers answers;
    for (const uint32_t rank : {0, 1}) {
      UpdateCall call = UpdateWithCounts(JobConfig::SYNC, rank, {7}, {counts[rank]}, {24, 32, 4});
      call.header.mutable_step()->set_normalizer(8);
      pss.Call(0, rpc::kUpdate, call.Message(), &answers);
    }
    // The mean gradient is (6, 8 | 1). The norms of its segments are 10 and 1.
    const std::vector<float> row = pss.Rows({7})[7];
    EXPECT_FLOAT_EQ(row[0], -0.6f);
    EXPECT_FLOAT_EQ(row[1], -0.8f);
    EXPECT_FLOAT_EQ(row[2], -1);
  }
}

// Each part is clipped to a limit that grows with the part's own count.
TEST(PsEngineRulesTest, CowClipClipsEachPartOfAHybridStepByItsOwnCount) {
  Pss pss(CowClipJob(JobConfig::HYBRID, 1));
  for (const uint32_t rank : {0, 1}) {
    UpdateCall call = UpdateWithCounts(JobConfig::HYBRID, rank, {7}, {kCounts[rank]}, {24, 32, 4});
    call.header.mutable_step()->set_normalizer(8);
    ASSERT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
    const std::vector<float> row = pss.Rows({7})[7];
    if (rank > 0) continue;
    // The part's gradient is (3, 4 | .5). The norms of its segments are 5 and .5, and the limit is
    // .25.
    EXPECT_FLOAT_EQ(row[0], -0.15f);
    EXPECT_FLOAT_EQ(row[1], -0.2f);
    EXPECT_FLOAT_EQ(row[2], -0.25f);
  }
  // The limit of the second part is 3 * max(|w|, .25) = .75.
  const std::vector<float> row = pss.Rows({7})[7];
  EXPECT_FLOAT_EQ(row[0], -0.6f);
  EXPECT_FLOAT_EQ(row[1], -0.8f);
  EXPECT_FLOAT_EQ(row[2], -0.75f) << "the part's own .5 is within its limit";
}

TEST(PsEngineRulesTest, CowClipGivesTheSameBitsOnSeveralPss) {
  std::vector<uint64_t> keys;
  for (uint64_t key = 1; key < 60; ++key) keys.push_back(Mix64(key));
  std::map<uint64_t, std::vector<float>> rows[2];
  for (const int num_ps : {1, 2}) {
    Pss pss(CowClipJob(JobConfig::SYNC, num_ps));
    Answers answers;
    for (int ps = 0; ps < num_ps; ++ps) {
      for (const uint32_t rank : {0, 1}) {
        std::vector<uint64_t> owned;
        std::vector<uint32_t> counts;
        std::vector<float> gradients;
        for (const uint64_t key : keys) {
          if (PsOfPartition(PartitionOf(key), num_ps) != ps) continue;
          owned.push_back(key);
          counts.push_back(kCounts[rank] + key % 5);
          for (size_t i = 0; i < kValues; ++i) {
            gradients.push_back(static_cast<float>((key >> i) % 100) - 50);
          }
        }
        UpdateCall call = UpdateWithCounts(JobConfig::SYNC, rank, owned, counts, gradients);
        call.header.mutable_step()->set_normalizer(16);
        pss.Call(ps, rpc::kUpdate, call.Message(), &answers);
      }
    }
    rows[num_ps - 1] = pss.Rows(keys);
  }
  EXPECT_EQ(rows[0], rows[1]);
}

TEST(PsEngineRulesTest, AHybridPartHasItsShareOfTheClipNormAndMustTellItsWeight) {
  JobConfig job = PsTestJob(JobConfig::HYBRID, 2, 1);
  job.mutable_tables(0)->mutable_segments(0)->set_gradient_clip_norm(2);
  Pss pss(job);
  UpdateCall call = UpdateOf(JobConfig::HYBRID, 0, 0, {7}, {24, 32, 8});
  call.header.mutable_step()->set_normalizer(8);
  const absl::Status status = pss.CallAndWait(0, rpc::kUpdate, call.Message()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("weight: table 4 has a clip norm"), absl::string_view::npos)
      << status;
  // The part's weight is a quarter of the normalizer, so (3, 4) is clipped to a norm of .5.
  call.header.set_weight(2);
  call.header.mutable_call()->set_number(2);
  ASSERT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
  const std::vector<float> row = pss.Rows({7})[7];
  EXPECT_FLOAT_EQ(row[0], 0.7f);
  EXPECT_FLOAT_EQ(row[1], 0.6f);
  EXPECT_EQ(row[2], 0);
}

TEST(PsEngineRulesTest, TouchedL2IsAddedOnceAStepInBothModes) {
  for (const auto mode : {JobConfig::SYNC, JobConfig::HYBRID}) {
    JobConfig job = PsTestJob(mode, 2, 1);
    for (SegmentConfig& segment : *job.mutable_tables(0)->mutable_segments()) {
      segment.set_l2(0.5f);
      segment.set_l2_mode(SegmentConfig::TOUCHED);
    }
    Pss pss(job);
    Answers answers;
    for (const uint32_t rank : {0, 1}) {
      pss.Call(0, rpc::kUpdate, UpdateOf(mode, rank, 0, {7}, {0, 0, 0}).Message(), &answers);
    }
    EXPECT_EQ(pss.Rows({7})[7], (std::vector<float>{0.5f, 0.5f, 0.5f})) << mode;
  }
}

TEST(PsEngineRulesTest, OccurrenceL2OfAHybridStepAddsUpToThatOfAnOrderedOne) {
  for (const auto mode : {JobConfig::SYNC, JobConfig::HYBRID}) {
    JobConfig job = PsTestJob(mode, 2, 1);
    for (SegmentConfig& segment : *job.mutable_tables(0)->mutable_segments()) {
      segment.set_l2(1e-3f);
    }
    Pss pss(job);
    Answers answers;
    for (const uint32_t rank : {0, 1}) {
      UpdateCall call = UpdateWithCounts(mode, rank, {7}, {kCounts[rank]});
      call.header.mutable_step()->set_normalizer(8);
      pss.Call(0, rpc::kUpdate, call.Message(), &answers);
    }
    EXPECT_NEAR(pss.Rows({7})[7][0], 1 - 5e-4, 1e-7) << mode;
  }
}

TEST(PsEngineRulesTest, TablesTakeTheRatesOfTheGlobalBatch) {
  JobConfig job = PsTestJob(JobConfig::HYBRID, 1, 1);
  job.set_global_batch_size(64);
  job.mutable_batch_scaling()->set_base_batch_size(16);
  job.mutable_batch_scaling()->set_rule(BatchScalingConfig::LINEAR);
  Pss pss(job);
  const UpdateCall call = UpdateOf(JobConfig::HYBRID, 0, 0, {7}, {1, 0, 0});
  ASSERT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
  EXPECT_EQ(pss.Rows({7})[7], (std::vector<float>{-3, 1, 1}));
}

}  // namespace
}  // namespace satrap
