// Tests steps of tables with semantics GLOBAL, and frozen tables.

#include <cmath>
#include <map>
#include <vector>

#include "common/numeric/hash.h"
#include "common/rpc/hot_methods.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_ps/testing/ps_engine_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig GlobalJob(int ranks, int num_ps) {
  JobConfig job = PsTestJob(JobConfig::SYNC, ranks, num_ps);
  job.mutable_tables(0)->set_semantics(TableConfig::GLOBAL);
  for (SegmentConfig& segment : *job.mutable_tables(0)->mutable_segments()) {
    segment.mutable_optimizer()->mutable_adam();
    segment.mutable_optimizer()->set_learning_rate(0.1f);
  }
  return job;
}

// One rank and one PS.
class GlobalPsEngineTest : public testing::Test {
 protected:
  void Begin(const JobConfig& job) {
    pss_ = std::make_unique<Pss>(job);
    step_ = 0;
  }
  void Step(const std::vector<uint64_t>& keys, bool finite = true) {
    UpdateCall call =
        UpdateOf(JobConfig::SYNC, 0, step_++, keys, std::vector<float>(keys.size() * kValues, 1));
    call.header.mutable_step()->set_finite(finite);
    ASSERT_TRUE(pss_->CallAndWait(0, rpc::kUpdate, call.Message()).ok());
  }
  std::vector<float> Row(uint64_t key) { return pss_->Rows({key})[key]; }

  std::unique_ptr<Pss> pss_;
  uint64_t step_ = 0;
};

TEST_F(GlobalPsEngineTest, ARowThatNoSampleHoldsTakesTheStepToo) {
  Begin(GlobalJob(1, 1));
  Step({7});
  EXPECT_NEAR(Row(7)[0], 0.9, 1e-6);
  Step({9});
  // For row 7, the second step of Adam has a gradient of 0.
  const double m = 0.09 / (1 - 0.81), v = 0.000999 / (1 - 0.998001);
  EXPECT_NEAR(Row(7)[0], 0.9 - 0.1 * m / std::sqrt(v), 2e-6);
  const std::vector<float> seven = Row(7);
  Step({});
  EXPECT_LT(Row(7)[0], seven[0]) << "a step without a sample of the table is a step";
}

TEST_F(GlobalPsEngineTest, AStepThatIsNotFiniteSweepsNothing) {
  Begin(GlobalJob(1, 1));
  Step({7});
  const std::vector<float> seven = Row(7);
  Step({9}, /*finite=*/false);
  EXPECT_EQ(Row(7), seven);
  Step({9});
  EXPECT_NE(Row(7), seven);
}

TEST_F(GlobalPsEngineTest, DenseL2AloneMovesARowThatNoSampleHolds) {
  JobConfig job = GlobalJob(1, 1);
  for (SegmentConfig& segment : *job.mutable_tables(0)->mutable_segments()) {
    segment.mutable_optimizer()->mutable_sgd();
    segment.mutable_optimizer()->set_learning_rate(1);
    segment.set_l2_mode(SegmentConfig::DENSE);
    segment.set_l2(0.5f);
  }
  Begin(job);
  Step({7});
  EXPECT_EQ(Row(7), (std::vector<float>{-0.5f, -0.5f, -0.5f}));
  Step({9});
  EXPECT_EQ(Row(7), (std::vector<float>{-0.25f, -0.25f, -0.25f}));
}

TEST_F(GlobalPsEngineTest, AnswersComeAfterTheSweep) {
  Begin(GlobalJob(1, 1));
  Step({7, 9});
  ManualExecutor& executor = pss_->executor();
  Answers answers;
  pss_->engine().Handle(
      rpc::kUpdate, UpdateOf(JobConfig::SYNC, 0, 1, {9}, {1, 1, 1}).Message(),
      [&](absl::StatusOr<rpc::Message> got) { answers.push_back(std::move(got)); });
  ASSERT_TRUE(executor.RunOne()) << "the Update";
  EXPECT_TRUE(answers.empty());
  Answers lookups;
  pss_->engine().Handle(
      rpc::kLookup, Pss::LookupOf({7}, true, 2),
      [&](absl::StatusOr<rpc::Message> got) { lookups.push_back(std::move(got)); });
  executor.RunReady();
  EXPECT_EQ(answers.size(), 1u);
  EXPECT_TRUE(pss_->CallAndWait(0, rpc::kLookup, Pss::LookupOf({7}, true, 2)).ok());
}

TEST_F(GlobalPsEngineTest, AFrozenTableDropsGradients) {
  for (const auto semantics : {TableConfig::LAZY, TableConfig::GLOBAL}) {
    JobConfig job = GlobalJob(1, 1);
    job.mutable_tables(0)->set_semantics(semantics);
    job.mutable_tables(0)->set_frozen(true);
    Begin(job);
    Step({7});
    Step({9});
    for (const uint64_t key : {7, 9}) EXPECT_EQ(Row(key), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(pss_->engine().Stats()[0].rows(), 2u) << "evaluation sees what training saw";
    EXPECT_EQ(pss_->engine().counts().updates, 2u);
    EXPECT_EQ(pss_->engine().counts().update_keys, 0u);
    EXPECT_EQ(pss_->engine().counts().rows_created, 2u);
  }
}

TEST(PsEngineTest, GlobalStepsGiveTheSameBitsForAnyNumberOfPss) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 100; ++i) keys.push_back(Mix64(i));
  std::map<uint64_t, std::vector<float>> wanted;
  for (const int num_ps : {1, 2, 5}) {
    Pss pss(GlobalJob(2, num_ps));
    Answers answers;
    for (uint64_t step = 0; step < 10; ++step) {
      for (const uint32_t rank : {0, 1}) {
        for (int ps = 0; ps < num_ps; ++ps) {
          std::vector<uint64_t> owned;
          std::vector<float> gradients;
          for (const uint64_t key : keys) {
            const uint64_t bits = Mix64(key ^ (step * 2 + rank));
            if (PsOfPartition(PartitionOf(key), num_ps) != ps || bits % 7 != 0) continue;
            owned.push_back(key);
            for (uint64_t d = 0; d < kValues; ++d) {
              gradients.push_back(static_cast<float>(Mix64(bits + d) >> 40) * 0x1p-20f - 8);
            }
          }
          pss.Call(ps, rpc::kUpdate,
                   UpdateOf(JobConfig::SYNC, rank, step, owned, gradients).Message(), &answers);
        }
      }
    }
    for (const auto& answer : answers) ASSERT_TRUE(answer.ok()) << answer.status();
    const auto rows = pss.Rows(keys);
    if (num_ps == 1) wanted = rows;
    EXPECT_EQ(rows, wanted) << num_ps;
  }
}

}  // namespace
}  // namespace satrap
