// Tests training in 16 bits: how results change, and that a step which overflows changes nothing on
// any rank.

#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/trainer/testing/trainer_job.h"
#include "nn_worker/trainer/testing/trainer_ranks.h"

namespace satrap {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

JobConfig JobOf(NnWorkerConfig::Precision precision) {
  JobConfig job = TrainerJob();
  job.set_global_batch_size(kTrainerBatch);
  job.mutable_nn_worker()->set_precision(precision);
  return job;
}

JobConfig F16Job(bool dynamic, double initial, int64_t growth_steps = 2000) {
  JobConfig job = JobOf(NnWorkerConfig::F16);
  LossScaleConfig* const scale = job.mutable_nn_worker()->mutable_loss_scale();
  scale->set_dynamic(dynamic);
  scale->set_initial(initial);
  scale->set_growth_steps(growth_steps);
  return job;
}

// Everything that a step may change, on any rank and in the tables.
struct State {
  std::vector<std::string> saved;
  std::vector<float> values, accumulators;
  bool operator==(const State& other) const {
    return saved == other.saved && values == other.values && accumulators == other.accumulators;
  }
};
State StateOf(TrainerRanks* ranks) {
  State state{{}, ranks->TableValues(), ranks->tables().Accumulators()};
  for (int r = 0; r < ranks->size(); ++r) state.saved.push_back(ranks->Saved(r));
  return state;
}

TEST(NetworkTrainerPrecisionTest, SixteenBitComputeFollowsThatOfF32) {
  TrainerRanks exact(1);
  for (const auto& [precision, tolerance] :
       {std::pair<NnWorkerConfig::Precision, float>{NnWorkerConfig::F16, .02f},
        {NnWorkerConfig::BF16, .1f}}) {
    TrainerRanks one(1, JobOf(NnWorkerConfig::F32)), half(2, JobOf(precision));
    double loss = 0, half_loss = 0;
    for (uint64_t step = 0; step < 30; ++step) {
      loss += one.Step(step, TrainerBatch(step), {kTrainerBatch}).loss;
      half_loss += half.Step(step, TrainerBatch(step), {20, kTrainerBatch}).loss;
    }
    EXPECT_NEAR(half_loss / loss, 1, .01);
    EXPECT_EQ(half.Weights(0), half.Weights(1));
    EXPECT_LT(LargestDifference(one.Weights(0), half.Weights(0)), tolerance);
    EXPECT_GT(LargestDifference(one.Weights(0), half.Weights(0)), 0);
    EXPECT_LT(LargestDifference(one.TableValues(), half.TableValues()), tolerance);
    // Evaluations compute in the same precision.
    EXPECT_NEAR(half.Score(TrainerBatch(99), {20, kTrainerBatch}).logloss(),
                one.Score(TrainerBatch(99), {kTrainerBatch}).logloss(), .01);
  }
}

// Multiplying by a power of two is exact, so a scale changes bits only if it was not divided out
// somewhere: before L2, in the gradients that are pushed, or in the loss.
TEST(NetworkTrainerPrecisionTest, AScaleChangesNoBits) {
  JobConfig small = F16Job(/*dynamic=*/false, 1024), large = F16Job(/*dynamic=*/false, 2048);
  for (JobConfig* job : {&small, &large}) job->mutable_dense_optimizer()->set_l2(.1f);
  TrainerRanks a(1, small), b(1, large);
  const StepResult one = a.Step(0, TrainerBatch(0), {kTrainerBatch});
  const StepResult other = b.Step(0, TrainerBatch(0), {kTrainerBatch});
  EXPECT_EQ(one.loss, other.loss);
  EXPECT_EQ(one.normalizer, other.normalizer);
  EXPECT_EQ(one.loss_scale->scale(), 1024);
  EXPECT_EQ(other.loss_scale->scale(), 2048);
  // The results differ only because a few gradients are subnormal as F16.
  EXPECT_LT(LargestDifference(a.TableValues(), b.TableValues()), 1e-4);
  EXPECT_LT(LargestDifference(a.Weights(0), b.Weights(0)), 1e-4);
}

// PERSIA's worker checked only for NaN, so an infinity passed; it checked only every 20th step; and
// it sent the gradients of rows even if it skipped the dense step.
TEST(NetworkTrainerPrecisionTest,
     AnInfinityAtOneRankChangesNothingAnywhereAndHalvesTheScaleEverywhere) {
  for (const auto precision : {NnWorkerConfig::F32, NnWorkerConfig::BF16, NnWorkerConfig::F16}) {
    const bool scaled = precision == NnWorkerConfig::F16;
    TrainerRanks ranks(3, scaled ? F16Job(/*dynamic=*/true, 4096) : JobOf(precision));
    double scale = 4096;
    for (uint64_t step = 0; step < 45; ++step) {
      std::vector<FakeSample> batch = TrainerBatch(step);
      const bool broken = step == 0 || step == 1 || step == 7 || step == 19 || step == 20 ||
                          step == 21 || step == 44;
      if (broken) {
        // The sample belongs to rank 1. Its gradient is -infinity, and no NaN comes before it.
        batch[30].label = kInf;
        batch[30].masked = false;
        batch[30].weight = 1;
      }
      ranks.MakePart(batch, 0);  // what a lookup adds to the tables is no change
      const State before = StateOf(&ranks);
      const StepResult result = ranks.Step(step, batch, {25, 40, kTrainerBatch});
      EXPECT_EQ(result.finite, !broken) << step;
      EXPECT_EQ(StateOf(&ranks) == before, broken) << step;
      EXPECT_EQ(result.gradients.header.tables_size() == 0, broken);
      if (!scaled) {
        EXPECT_FALSE(result.loss_scale.has_value());
        continue;
      }
      if (broken) scale /= 2;
      EXPECT_EQ(result.loss_scale->scale(), scale) << step;
      for (int r = 0; r < 3; ++r) EXPECT_EQ(ranks.GradientScaleOf(r), scale / 64) << step;
    }
  }
}

TEST(NetworkTrainerPrecisionTest, TheScaleSettlesBelowWhatOverflows) {
  TrainerRanks ranks(2, F16Job(/*dynamic=*/true, 16777216, /*growth_steps=*/10));
  int skipped = 0, skipped_late = 0;
  double first = 0, last = 0, largest = 0;
  for (uint64_t step = 0; step < 200; ++step) {
    std::vector<FakeSample> batch = TrainerBatch(step % 20);
    for (FakeSample& sample : batch) sample.weight *= 64;  // overflows at 2^24
    const StepResult result = ranks.Step(step, batch, {30, kTrainerBatch});
    if (!result.finite) ++(step < 100 ? skipped : skipped_late);
    EXPECT_FALSE(result.large) << "the loss scale does not count";
    if (step == 100) largest = result.loss_scale->scale();
    if (step < 20) first += result.loss / result.weight;
    if (step >= 180) last += result.loss / result.weight;
  }
  EXPECT_GE(skipped, 2);
  EXPECT_LE(skipped_late, 12) << "at most one in each growth_steps";
  EXPECT_LT(largest, 16777216);
  EXPECT_GT(largest, 64);
  EXPECT_LT(last, first) << "it learns all the same";
}

TEST(NetworkTrainerPrecisionTest, FiniteStepsDoubleTheScaleAndStepsWithoutWeightAreNone) {
  TrainerRanks ranks(1, F16Job(/*dynamic=*/true, 256, /*growth_steps=*/3));
  std::vector<FakeSample> empty = TrainerBatch(0);
  for (FakeSample& sample : empty) sample.weight = 0;
  std::vector<double> scales;
  for (uint64_t step = 0; step < 6; ++step) {
    ranks.Step(step, empty, {kTrainerBatch});
    scales.push_back(ranks.Step(step, TrainerBatch(step), {kTrainerBatch}).loss_scale->scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{256, 256, 512, 512, 512, 1024}));
}

}  // namespace
}  // namespace satrap
