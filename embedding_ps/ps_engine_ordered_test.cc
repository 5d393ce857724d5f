#include <map>
#include <vector>

#include "common/numeric/hash.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_ps/testing/ps_engine_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// Sync mode, two ranks, one PS.
class OrderedPsEngineTest : public testing::Test {
 protected:
  static UpdateCall Part(uint32_t rank, uint64_t step, const std::vector<uint64_t>& keys,
                         const std::vector<float>& gradients) {
    return UpdateOf(JobConfig::SYNC, rank, step, keys, gradients);
  }
  void Send(const UpdateCall& call) { pss_.Call(0, rpc::kUpdate, call.Message(), &answers_); }
  absl::Status LookupOfStep(uint64_t step) {
    return pss_.CallAndWait(0, rpc::kLookup, Pss::LookupOf({7}, true, step)).status();
  }

  Pss pss_{PsTestJob(JobConfig::SYNC, 2, 1)};
  Answers answers_;
};

TEST_F(OrderedPsEngineTest, AppliesOneStepOfTheSumWhenAllPartsAreThereAndThenAnswersAll) {
  Send(Part(1, 0, {7, 9}, {1, 1, 1, 2, 2, 2}));
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{1, 1, 1}));
  Send(Part(0, 0, {7}, {4, 4, 4}));
  EXPECT_EQ(answers_.size(), 2u);
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{-4, -4, -4}));
  EXPECT_EQ(pss_.Rows({9})[9], (std::vector<float>{-1, -1, -1}));
}

TEST_F(OrderedPsEngineTest, EmptyPartsCount) {
  Send(Part(0, 0, {}, {}));
  Send(Part(1, 0, {}, {}));
  EXPECT_EQ(answers_.size(), 2u);
  EXPECT_TRUE(LookupOfStep(1).ok());
}

TEST_F(OrderedPsEngineTest, LookupFindsExactlyTheStepsBeforeIts) {
  EXPECT_TRUE(LookupOfStep(0).ok());
  EXPECT_EQ(LookupOfStep(1).code(), absl::StatusCode::kInvalidArgument);
  Send(Part(0, 0, {7}, {1, 1, 1}));
  EXPECT_TRUE(LookupOfStep(0).ok());
  Send(Part(1, 0, {}, {}));
  EXPECT_TRUE(LookupOfStep(1).ok());
  EXPECT_EQ(LookupOfStep(0).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(OrderedPsEngineTest, RepeatsOfAWaitingPartAddNothing) {
  Send(Part(1, 0, {7}, {1, 1, 1}));
  Send(Part(1, 0, {7}, {1, 1, 1}));
  Send(Part(0, 0, {}, {}));
  EXPECT_EQ(answers_.size(), 3u);
  for (const auto& answer : answers_) EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{0, 0, 0}));
}

TEST_F(OrderedPsEngineTest, AWaitingPartIsToldToWaitAndStillCounts) {
  Send(Part(1, 0, {7}, {1, 1, 1}));
  pss_.executor().AdvanceBy(6000000);
  ASSERT_EQ(answers_.size(), 1u);
  UpdateAnswerHeader header;
  ASSERT_TRUE(header.ParseFromString(answers_[0]->header));
  EXPECT_EQ(header.outcome(), OUTCOME_WAIT);
  Send(Part(0, 0, {}, {}));
  Send(Part(1, 0, {7}, {1, 1, 1}));
  EXPECT_EQ(answers_.size(), 3u);
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{0, 0, 0}));
}

TEST_F(OrderedPsEngineTest, PartsThatDisagreeAboutWeightFlagFactorOrStepAreRefused) {
  Send(Part(0, 0, {7}, {1, 1, 1}));
  uint64_t number = 1;
  const auto refuse = [&](auto change) {
    UpdateCall call = Part(1, 0, {7}, {1, 1, 1});
    call.header.mutable_call()->set_number(number++);
    change(call.header.mutable_step());
    Answers answers;
    pss_.Call(0, rpc::kUpdate, call.Message(), &answers);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].status().code(), absl::StatusCode::kInvalidArgument);
  };
  refuse([](StepHeader* step) { step->set_normalizer(2); });
  refuse([](StepHeader* step) { step->set_finite(false); });
  refuse([](StepHeader* step) { step->set_learning_rate_factor(2); });
  refuse([](StepHeader* step) { step->set_step(1); });
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{1, 1, 1}));
}

TEST_F(OrderedPsEngineTest, AStepThatIsNotFiniteCountsButChangesNothing) {
  for (const uint32_t rank : {0, 1}) {
    UpdateCall call = Part(rank, 0, {7}, {1, 1, 1});
    call.header.mutable_step()->set_finite(false);
    Send(call);
  }
  EXPECT_EQ(answers_.size(), 2u);
  EXPECT_EQ(pss_.engine().Stats()[0].rows(), 0u);
  EXPECT_TRUE(LookupOfStep(1).ok());
}

TEST_F(OrderedPsEngineTest, LoadIsRefusedWhileAStepIsCollected) {
  Send(Part(0, 0, {7}, {1, 1, 1}));
  LoadTablesRequest request;
  *request.mutable_envelope() = ThisRun();
  request.mutable_call()->set_sender(0);
  request.mutable_call()->set_number(1);
  request.mutable_call()->set_oldest_open(1);
  request.set_directory("nowhere");
  const auto answer =
      pss_.CallAndWait(0, rpc::kLoadTables, {request.SerializeAsString(), Buffer()});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
}

// Trains three steps of three ranks with random gradients. Each rank has three quarters of the
// keys, so most keys are shared. The Updates of a step are sent to `num_ps` PSs in the order of
// ranks that `order` gives.
std::map<uint64_t, std::vector<float>> TrainOrdered(int num_ps,
                                                    const std::vector<uint32_t>& order) {
  JobConfig job = PsTestJob(JobConfig::SYNC, 3, num_ps);
  for (SegmentConfig& segment : *job.mutable_tables(0)->mutable_segments()) {
    segment.mutable_optimizer()->mutable_adagrad();
    segment.mutable_optimizer()->set_learning_rate(0.1f);
  }
  Pss pss(job);
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 200; ++i) keys.push_back(Mix64(i));
  Answers answers;
  for (uint64_t step = 0; step < 3; ++step) {
    for (const uint32_t rank : order) {
      for (int ps = 0; ps < num_ps; ++ps) {
        std::vector<uint64_t> owned;
        std::vector<float> gradients;
        for (const uint64_t key : keys) {
          if (PsOfPartition(PartitionOf(key), num_ps) != ps || (key + rank) % 4 == 0) continue;
          owned.push_back(key);
          for (uint64_t d = 0; d < kValues; ++d) {
            const uint64_t bits = Mix64(key ^ (step * 64 + rank * 8 + d));
            gradients.push_back(static_cast<float>(bits >> 40) * 0x1p-20f - 8);
          }
        }
        UpdateCall call = UpdateOf(JobConfig::SYNC, rank, step, owned, gradients);
        call.header.mutable_step()->set_normalizer(7);
        pss.Call(ps, rpc::kUpdate, call.Message(), &answers);
      }
    }
  }
  EXPECT_EQ(answers.size(), 9u * num_ps);
  for (const auto& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status();
  return pss.Rows(keys);
}

TEST(PsEngineTest, OrderedStepsGiveTheSameBitsForAnyNumberOfPssAndOrderOfArrival) {
  const auto rows = TrainOrdered(1, {0, 1, 2});
  EXPECT_EQ(rows.size(), 200u);
  EXPECT_EQ(TrainOrdered(1, {2, 0, 1}), rows);
  EXPECT_EQ(TrainOrdered(2, {1, 2, 0}), rows);
  EXPECT_EQ(TrainOrdered(4, {2, 1, 0}), rows);
  EXPECT_EQ(TrainOrdered(7, {0, 2, 1}), rows);
}

}  // namespace
}  // namespace satrap
