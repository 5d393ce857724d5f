#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "common/numeric/clip_factor.h"
#include "common/numeric/exact_sum.h"
#include "common/numeric/hash.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/squares.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_ps/testing/ps_engine_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using Row = std::vector<float>;

rpc::Message ApplyStepOf(uint32_t rank, uint64_t step, float clip_factor, uint64_t number = 0) {
  ApplyStepHeader header;
  *header.mutable_envelope() = ThisRun();
  header.mutable_call()->set_sender(rank);
  header.mutable_call()->set_number(number > 0 ? number : step + 1);
  header.mutable_call()->set_oldest_open(header.call().number());
  header.set_step(step);
  header.set_clip_factor(clip_factor);
  return rpc::MessageOf(header);
}

JobConfig ClippedJob(int ranks, int num_ps) {
  JobConfig job = PsTestJob(JobConfig::SYNC, ranks, num_ps);
  job.set_gradient_clip_norm(10);
  return job;
}

double SquaresOf(const absl::StatusOr<rpc::Message>& answer) {
  ExactSum sum;
  EXPECT_TRUE(answer.ok() && rpc::AddSquares(*answer, &sum).ok()) << answer.status();
  return sum.Rounded();
}

// Two ranks, one PS. SGD with rate 1; all values begin at 1.
class ClippedPsEngineTest : public testing::Test {
 protected:
  static UpdateCall Part(uint32_t rank, uint64_t step, const std::vector<uint64_t>& keys,
                         const std::vector<float>& gradients) {
    return UpdateOf(JobConfig::SYNC, rank, step, keys, gradients);
  }
  void Send(const UpdateCall& call) { pss_.Call(0, rpc::kUpdate, call.Message(), &answers_); }
  absl::Status Apply(uint32_t rank, uint64_t step, float factor, uint64_t number = 0) {
    return pss_.CallAndWait(0, rpc::kApplyStep, ApplyStepOf(rank, step, factor, number)).status();
  }
  absl::Status LookupOfStep(uint64_t step) {
    return pss_.CallAndWait(0, rpc::kLookup, Pss::LookupOf({7}, true, step)).status();
  }
  void SendStepZero() {
    Send(Part(0, 0, {7}, {1, 2, 3}));
    Send(Part(1, 0, {7, 9}, {1, 0, 0, 0, 0, 4}));
  }

  Pss pss_{ClippedJob(2, 1)};
  Answers answers_;
};

TEST_F(ClippedPsEngineTest, UpdatesAreAnsweredWithTheSquaresAndTheStepWaitsForItsFactor) {
  Send(Part(0, 0, {7}, {1, 2, 3}));
  EXPECT_TRUE(answers_.empty());
  Send(Part(1, 0, {7, 9}, {1, 0, 0, 0, 0, 4}));
  ASSERT_EQ(answers_.size(), 2u);
  for (const auto& answer : answers_) EXPECT_EQ(SquaresOf(answer), 4 + 4 + 9 + 16);
  EXPECT_EQ(pss_.Rows({7})[7], (Row{1, 1, 1}));
  EXPECT_EQ(pss_.engine().Stats()[0].rows(), 0u) << "squares create no rows";
  EXPECT_FALSE(LookupOfStep(1).ok());
  EXPECT_TRUE(LookupOfStep(0).ok());

  ASSERT_TRUE(Apply(1, 0, 0.5f).ok());
  EXPECT_EQ(pss_.Rows({7})[7], (Row{0, 0, -0.5f}));
  EXPECT_EQ(pss_.Rows({9})[9], (Row{1, 1, -1}));
  EXPECT_TRUE(LookupOfStep(1).ok());
}

TEST(ClippedPsEngineKillPointTest, IsReachedWithTheFactorAndBeforeTheRowsChange) {
  JobConfig to_kill;
  to_kill.add_kill_points()->set_point(KillPoint::PS_BETWEEN_HALVES);
  Pss* running = nullptr;
  std::vector<Row> rows_then;
  KillPoints kill_points(to_kill, 0, 1, [&] { rows_then.push_back(running->Rows({7})[7]); });
  PsEngine::Options options;
  options.kill_points = &kill_points;
  Pss pss(ClippedJob(1, 1), /*disk_executor=*/nullptr, options);
  running = &pss;
  Answers answers;
  pss.Call(0, rpc::kUpdate, UpdateOf(JobConfig::SYNC, 0, 0, {7}, {1, 2, 3}).Message(), &answers);
  EXPECT_TRUE(rows_then.empty());
  ASSERT_TRUE(pss.CallAndWait(0, rpc::kApplyStep, ApplyStepOf(0, 0, 1)).ok());
  EXPECT_EQ(rows_then, std::vector<Row>{Row({1, 1, 1})});
}

TEST_F(ClippedPsEngineTest, AStepIsAppliedOnceHoweverManyApplyStepsCome) {
  SendStepZero();
  ASSERT_TRUE(Apply(1, 0, 0.5f).ok());
  const auto once = pss_.Rows({7, 9});
  EXPECT_TRUE(Apply(1, 0, 0.5f).ok()) << "a repeated attempt";
  EXPECT_TRUE(Apply(0, 0, 0.5f).ok()) << "the other part's";
  EXPECT_TRUE(Apply(0, 0, 0.5f, /*number=*/2).ok()) << "another call of the same step";
  EXPECT_EQ(pss_.Rows({7, 9}), once);
  EXPECT_TRUE(LookupOfStep(1).ok());
}

TEST_F(ClippedPsEngineTest, AnotherFactorOrStepIsRefusedAndChangesNothing) {
  EXPECT_EQ(Apply(0, 0, 1, 11).code(), absl::StatusCode::kInvalidArgument) << "nothing waits";
  SendStepZero();
  EXPECT_EQ(Apply(0, 1, 0.5f, 12).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Apply(0, 0, 2, 13).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(pss_.Rows({7})[7], (Row{1, 1, 1}));
  ASSERT_TRUE(Apply(0, 0, 0.5f, 14).ok());
  EXPECT_EQ(Apply(1, 0, 0.25f, 11).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(pss_.Rows({7})[7], (Row{0, 0, -0.5f}));
}

TEST_F(ClippedPsEngineTest, TheNextStepAndCutsAndLoadsWaitForBothHalves) {
  SendStepZero();
  Answers refused;
  pss_.Call(0, rpc::kUpdate, Part(0, 1, {7}, {1, 1, 1}).Message(), &refused);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].status().message(),
            "step.step: an Update arrived while step 0 was still waiting for its clip_factor");
  BeginCutRequest cut;
  *cut.mutable_envelope() = ThisRun();
  cut.mutable_call()->set_number(1);
  cut.mutable_call()->set_oldest_open(1);
  cut.set_cut(1);
  cut.set_directory("nowhere");
  EXPECT_EQ(pss_.CallAndWait(0, rpc::kBeginCut, rpc::MessageOf(cut)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  LoadTablesRequest load;
  *load.mutable_envelope() = ThisRun();
  load.mutable_call()->set_number(1);
  load.mutable_call()->set_oldest_open(1);
  load.set_directory("nowhere");
  EXPECT_EQ(pss_.CallAndWait(0, rpc::kLoadTables, rpc::MessageOf(load)).status().code(),
            absl::StatusCode::kFailedPrecondition);

  ASSERT_TRUE(Apply(0, 0, 1).ok());
  load.mutable_call()->set_number(2);
  load.mutable_call()->set_oldest_open(2);
  EXPECT_EQ(pss_.CallAndWait(0, rpc::kLoadTables, rpc::MessageOf(load)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ClippedPsEngineTest, AStepThatIsNotFiniteHasOneHalf) {
  for (const uint32_t rank : {0, 1}) {
    UpdateCall call = Part(rank, 0, {}, {});
    call.header.mutable_step()->set_finite(false);
    Send(call);
  }
  ASSERT_EQ(answers_.size(), 2u);
  UpdateAnswerHeader header;
  ASSERT_TRUE(header.ParseFromString(answers_[0]->header));
  EXPECT_FALSE(header.has_squares());
  EXPECT_TRUE(LookupOfStep(1).ok());
  EXPECT_FALSE(Apply(0, 0, 1).ok());
}

TEST_F(ClippedPsEngineTest, PartsThatDisagreeAboutTheDenseGradientAreRefused) {
  UpdateCall first = Part(0, 0, {7}, {1, 2, 3}), second = Part(1, 0, {7}, {1, 2, 3});
  first.header.mutable_step()->set_dense_squares(1);
  second.header.mutable_step()->set_dense_squares(2);
  Send(first);
  Send(second);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].status().code(), absl::StatusCode::kInvalidArgument);
}

struct Trained {
  std::map<uint64_t, Row> rows;
  std::vector<double> squares;
  bool operator==(const Trained& other) const {
    return rows == other.rows && squares == other.squares;
  }
};

// Trains three steps of two ranks with random gradients. The gradients are clipped as embedding
// workers clip them.
Trained Train(JobConfig job) {
  const int num_ps = job.embedding_ps().replicas();
  Pss pss(job);
  Trained trained;
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 300; ++i) keys.push_back(Mix64(i));
  for (uint64_t step = 0; step < 3; ++step) {
    Answers answers;
    for (const uint32_t rank : {1, 0}) {
      for (int ps = 0; ps < num_ps; ++ps) {
        std::vector<uint64_t> owned;
        std::vector<float> gradients;
        for (const uint64_t key : keys) {
          if (PsOfPartition(PartitionOf(key), num_ps) != ps || (key + rank) % 4 == 0) continue;
          if ((key >> 8) % 3 == step) continue;  // no sample of the step holds it
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
    // Rank 0's Updates come last; after each of them the PS answers both ranks.
    ExactSum total;
    for (int ps = 0; ps < num_ps; ++ps) {
      EXPECT_TRUE(rpc::AddSquares(answers[2 * ps].value(), &total).ok());
    }
    trained.squares.push_back(total.Rounded());
    const float factor = ClipFactor(job.gradient_clip_norm(), total.Rounded());
    EXPECT_LT(factor, 1);
    for (int ps = 0; ps < num_ps; ++ps) {
      for (const uint32_t rank : {0, 1}) {
        const auto applied = pss.CallAndWait(ps, rpc::kApplyStep, ApplyStepOf(rank, step, factor));
        EXPECT_TRUE(applied.ok()) << applied.status();
      }
    }
  }
  trained.rows = pss.Rows(keys);
  return trained;
}

TEST(ClippedPsEnginesTest, GiveTheSameBitsForAnyNumberOfPssAndShards) {
  JobConfig job = ClippedJob(2, 1);
  SegmentConfig* first = job.mutable_tables(0)->mutable_segments(0);
  first->mutable_optimizer()->mutable_adagrad();
  first->mutable_optimizer()->set_learning_rate(0.1f);
  first->set_l2(0.125f);
  first->set_l2_mode(SegmentConfig::TOUCHED);
  first->set_gradient_clip_norm(1);
  for (const auto semantics : {TableConfig::LAZY, TableConfig::GLOBAL}) {
    if (semantics == TableConfig::GLOBAL) {
      job.mutable_tables(0)->set_semantics(semantics);
      first->set_l2_mode(SegmentConfig::DENSE);
    }
    job.mutable_embedding_ps()->set_replicas(1);
    const Trained one = Train(job);
    for (const int num_ps : {2, 3, 7}) {
      job.mutable_embedding_ps()->set_replicas(num_ps);
      job.mutable_embedding_ps()->set_shards(num_ps);
      EXPECT_EQ(Train(job), one) << num_ps;
    }
  }
}

// With one key and one part, a step of a row consists of the segment's rules, the squares, the
// factor and the optimizer, in this order.
TEST(ClippedPsEnginesTest, StepARowAsAScalarReferenceDoes) {
  JobConfig job = ClippedJob(1, 1);
  job.mutable_tables(0)->mutable_segments(0)->set_l2(0.5f);
  job.mutable_tables(0)->mutable_segments(0)->set_l2_mode(SegmentConfig::TOUCHED);
  job.mutable_tables(0)->mutable_segments(1)->set_gradient_clip_norm(2);
  job.set_gradient_clip_norm(1);
  Pss pss(job);
  double w[3] = {1, 1, 1};
  for (uint64_t step = 0; step < 5; ++step) {
    const double sums[3] = {4, -8 + static_cast<double>(step), 16};
    double g[3], squares = 0;
    for (int d = 0; d < 3; ++d) {
      g[d] = sums[d] / 4 + (d < 2 ? 0.5 * w[d] : 0);
      if (d == 2) g[d] = 2;
      squares += g[d] * g[d];
    }
    UpdateCall call = UpdateOf(JobConfig::SYNC, 0, step, {7},
                               {static_cast<float>(sums[0]), static_cast<float>(sums[1]), 16});
    call.header.mutable_step()->set_normalizer(4);
    const double got = SquaresOf(pss.CallAndWait(0, rpc::kUpdate, call.Message()));
    EXPECT_NEAR(got, squares, 1e-5 * squares);
    const float factor = ClipFactor(1, got);
    ASSERT_TRUE(pss.CallAndWait(0, rpc::kApplyStep, ApplyStepOf(0, step, factor)).ok());
    for (int d = 0; d < 3; ++d) w[d] -= g[d] / std::sqrt(squares);
    const Row row = pss.Rows({7})[7];
    for (int d = 0; d < 3; ++d) EXPECT_NEAR(row[d], w[d], 1e-5) << step << " " << d;
  }
}

// With semantics GLOBAL and L2 mode DENSE every row has a gradient in every step.
TEST(ClippedPsEnginesTest, StepRowsThatNoSampleHoldsAsAScalarReferenceDoes) {
  JobConfig job = ClippedJob(1, 1);
  job.mutable_tables(0)->set_semantics(TableConfig::GLOBAL);
  SegmentConfig* decayed = job.mutable_tables(0)->mutable_segments(0);
  decayed->set_l2(0.5f);
  decayed->set_l2_mode(SegmentConfig::DENSE);
  decayed->set_gradient_clip_norm(0.625f);
  job.set_gradient_clip_norm(1);
  Pss pss(job);
  std::map<uint64_t, std::vector<double>> rows;
  double clipped_by_others = 0;
  for (uint64_t step = 0; step < 12; ++step) {
    const bool finite = step % 5 != 3;
    std::map<uint64_t, std::vector<double>> gradients;
    std::vector<uint64_t> keys;
    std::vector<float> sums;
    for (uint64_t id = 0; id < 12 && finite && step != 7; ++id) {
      if ((id + step) % 3 != 0 || id > 2 * step + 3) continue;
      keys.push_back(Mix64(id));
      rows.try_emplace(keys.back(), std::vector<double>{1, 1, 1});
      std::vector<double>& gradient = gradients[keys.back()];
      for (int d = 0; d < 3; ++d) {
        sums.push_back(static_cast<float>(id % 4) - static_cast<float>(d));
        gradient.push_back(sums.back() / 4);
      }
    }
    UpdateCall call = UpdateOf(JobConfig::SYNC, 0, step, keys, sums);
    call.header.mutable_step()->set_normalizer(4);
    call.header.mutable_step()->set_finite(finite);
    const auto answer = pss.CallAndWait(0, rpc::kUpdate, call.Message());
    if (finite) {
      double squares = 0;
      for (const auto& [key, w] : rows) {
        const bool held = gradients.count(key) > 0;
        std::vector<double>& g = gradients.try_emplace(key, 3).first->second;
        for (int d : {0, 1}) g[d] += 0.5 * w[d];
        const double norm = std::hypot(g[0], g[1]);
        for (int d : {0, 1}) g[d] *= std::min(1.0, 0.625 / norm);
        for (const double value : g) squares += value * value;
        if (!held) clipped_by_others += g[0] * g[0];
      }
      const double got = SquaresOf(answer);
      EXPECT_NEAR(got, squares, 1e-5 * squares) << step;
      const float factor = ClipFactor(1, got);
      const double wanted = std::min(1.0, 1 / std::sqrt(squares));
      // A second ApplyStep, with another call number, must not apply the step again.
      for (const uint64_t number : {2 * step + 1, 2 * step + 2}) {
        ASSERT_TRUE(pss.CallAndWait(0, rpc::kApplyStep, ApplyStepOf(0, step, factor, number)).ok());
      }
      for (auto& [key, w] : rows) {
        for (int d = 0; d < 3; ++d) w[d] -= wanted * gradients[key][d];
      }
    }
    for (const auto& [key, w] : rows) {
      const Row row = pss.Rows({key})[key];
      for (int d = 0; d < 3; ++d) EXPECT_NEAR(row[d], w[d], 1e-5) << step << " " << d;
    }
  }
  EXPECT_GT(clipped_by_others, 0.1);
}

TEST(ClippedPsEnginesTest, LeaveFrozenTablesOut) {
  for (const auto semantics : {TableConfig::LAZY, TableConfig::GLOBAL}) {
    JobConfig job = ClippedJob(1, 1);
    job.mutable_tables(0)->set_semantics(semantics);
    if (semantics == TableConfig::GLOBAL) {
      job.mutable_tables(0)->mutable_segments(0)->set_l2(0.5f);
      job.mutable_tables(0)->mutable_segments(0)->set_l2_mode(SegmentConfig::DENSE);
    }
    job.mutable_tables(0)->set_frozen(true);
    Pss pss(job);
    for (uint64_t step = 0; step < 2; ++step) {
      const UpdateCall call = UpdateOf(JobConfig::SYNC, 0, step, {7 + step}, {1, 2, 3});
      EXPECT_EQ(SquaresOf(pss.CallAndWait(0, rpc::kUpdate, call.Message())), 0);
      ASSERT_TRUE(pss.CallAndWait(0, rpc::kApplyStep, ApplyStepOf(0, step, 0.5f)).ok());
    }
    EXPECT_EQ(pss.Rows({7})[7], (Row{1, 1, 1}));
    EXPECT_EQ(pss.engine().Stats()[0].rows(), 2u);
  }
}

TEST(ClippedPsEnginesTest, LeaveTablesOutThatAreNotNormalised) {
  JobConfig job = ClippedJob(1, 1);
  job.mutable_tables(0)->set_normalisation(NONE);
  Pss pss(job);
  const UpdateCall call = UpdateOf(JobConfig::SYNC, 0, 0, {7}, {1, 2, 3});
  EXPECT_EQ(SquaresOf(pss.CallAndWait(0, rpc::kUpdate, call.Message())), 0);
  ASSERT_TRUE(pss.CallAndWait(0, rpc::kApplyStep, ApplyStepOf(0, 0, 0.5f)).ok());
  EXPECT_EQ(pss.Rows({7})[7], (Row{0, -1, -2}));
}

}  // namespace
}  // namespace satrap
