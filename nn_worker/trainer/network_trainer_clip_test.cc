// Tests steps that wait for the norm of all gradients (JobConfig.gradient_clip_norm).

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/trainer/testing/trainer_job.h"
#include "nn_worker/trainer/testing/trainer_ranks.h"

namespace satrap {
namespace {

constexpr float kLimit = .25f;

// SGD with a learning rate of 1, so that the step equals the gradient.
JobConfig SgdJob(NnWorkerConfig::Precision precision, float limit) {
  JobConfig job = TrainerJob();
  job.set_global_batch_size(kTrainerBatch);
  job.set_gradient_clip_norm(limit);
  job.mutable_nn_worker()->set_precision(precision);
  job.mutable_dense_optimizer()->mutable_sgd();
  job.mutable_dense_optimizer()->set_learning_rate(1);
  job.mutable_dense_optimizer()->set_l2(.5f);
  return job;
}

StepResult Join(NetworkTrainer* trainer, uint64_t step, PartInput part) {
  std::promise<StepResult> result;
  trainer->JoinStep(step, trainer->Prepare(std::move(part)), StepFlags(),
                    [&](absl::StatusOr<StepResult> got) { result.set_value(got.value()); });
  return result.get_future().get();
}

StepEnd End(NetworkTrainer* trainer, double squares) {
  std::promise<StepEnd> end;
  trainer->EndStep(squares, [&](absl::StatusOr<StepEnd> got) { end.set_value(got.value()); });
  return end.get_future().get();
}

std::vector<float> Difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference(a.size());
  for (size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return difference;
}

float Largest(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

class ClippedTrainerTest : public testing::TestWithParam<NnWorkerConfig::Precision> {};

TEST_P(ClippedTrainerTest, TakesTheStepOfTheNormalisedGradientWithL2TimesTheFactor) {
  TrainerRanks plain(1, SgdJob(GetParam(), 0)), clipped(1, SgdJob(GetParam(), kLimit));
  const std::vector<float> before = plain.Weights(0);
  ASSERT_EQ(clipped.Weights(0), before);
  const StepResult full =
      Join(plain.trainer(0), 0, plain.MakePart(TrainerBatch(0), /*first_sample=*/0));
  EXPECT_FALSE(full.dense_squares.has_value());
  const std::vector<float> gradient = Difference(before, plain.Weights(0));
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * g;
  ASSERT_GT(squares, .01);

  const StepResult held =
      Join(clipped.trainer(0), 0, clipped.MakePart(TrainerBatch(0), /*first_sample=*/0));
  ASSERT_TRUE(held.dense_squares.has_value());
  EXPECT_NEAR(*held.dense_squares, squares, 1e-4 * squares);
  EXPECT_EQ(clipped.Weights(0), before) << "the step waits";
  const StepEnd end = End(clipped.trainer(0), 4 * kLimit * kLimit);
  EXPECT_EQ(end.clip_factor, .5f);
  EXPECT_EQ(end.loss_scale.has_value(), GetParam() == NnWorkerConfig::F16);
  std::vector<float> half = gradient;
  for (float& g : half) g *= .5f;
  EXPECT_LT(Largest(Difference(half, Difference(before, clipped.Weights(0)))), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Precisions, ClippedTrainerTest,
                         testing::Values(NnWorkerConfig::F32, NnWorkerConfig::F16));

TEST(NetworkTrainerClipTest, AStepUnderTheLimitHasTheBitsOfOneWithoutIt) {
  JobConfig job = TrainerJob();
  TrainerRanks plain(2, job);
  job.set_gradient_clip_norm(1e6f);
  TrainerRanks clipped(2, job);
  for (uint64_t step = 0; step < 5; ++step) {
    plain.Step(step, TrainerBatch(step), {20, kTrainerBatch});
    clipped.Step(step, TrainerBatch(step), {20, kTrainerBatch});
  }
  EXPECT_EQ(clipped.Saved(0), plain.Saved(0));
  EXPECT_EQ(clipped.TableValues(), plain.TableValues());
}

TEST(NetworkTrainerClipTest, SyncEqualsOneMachineAndRanksStayEqual) {
  JobConfig job = TrainerJob();
  job.set_gradient_clip_norm(.05f);
  TrainerRanks one(1, job), many(3, job), plain(1);
  for (uint64_t step = 0; step < 50; ++step) {
    const StepResult a = one.Step(step, TrainerBatch(step), {kTrainerBatch});
    const StepResult b = many.Step(step, TrainerBatch(step), {7, 40, kTrainerBatch});
    plain.Step(step, TrainerBatch(step), {kTrainerBatch});
    ASSERT_NEAR(*a.dense_squares, *b.dense_squares, 1e-3 * *a.dense_squares);
  }
  for (int r = 0; r < 3; ++r) {
    EXPECT_LT(Largest(Difference(one.Weights(0), many.Weights(r))), 1e-5);
    EXPECT_EQ(many.Weights(r), many.Weights(0));
  }
  EXPECT_LT(Largest(Difference(one.TableValues(), many.TableValues())), 1e-5);
  EXPECT_GT(Largest(Difference(one.TableValues(), plain.TableValues())), 1e-3);
}

TEST(NetworkTrainerClipTest, ADeviceClipsAsTheCpuDoesWhateverItsOrder) {
  JobConfig job = TrainerJob();
  job.set_gradient_clip_norm(.05f);
  TrainerRanks cpu(1, job);
  TrainerRanks device(1, job, kTrainerBatch, /*ordered=*/true, HostDeviceOptions());
  TrainerRanks reversed(1, job, kTrainerBatch, /*ordered=*/true,
                        HostDeviceOptions{{host::ExecutionOrder::kReverse}});
  for (uint64_t step = 0; step < 5; ++step) {
    const StepResult a = cpu.Step(step, TrainerBatch(step), {kTrainerBatch});
    const StepResult b = device.Step(step, TrainerBatch(step), {kTrainerBatch});
    const StepResult c = reversed.Step(step, TrainerBatch(step), {kTrainerBatch});
    ASSERT_NEAR(*b.dense_squares, *a.dense_squares, 1e-4 * *a.dense_squares);
    ASSERT_EQ(*c.dense_squares, *b.dense_squares);
  }
  EXPECT_LT(Largest(Difference(device.Weights(0), cpu.Weights(0))), 1e-5);
  EXPECT_LT(Largest(Difference(device.TableValues(), cpu.TableValues())), 1e-5);
  EXPECT_EQ(reversed.Saved(0), device.Saved(0));
}

TEST(NetworkTrainerClipTest, AStepThatChangesNothingDoesNotWait) {
  JobConfig job = TrainerJob();
  job.set_gradient_clip_norm(kLimit);
  TrainerRanks ranks(1, job);
  const std::vector<float> before = ranks.Weights(0);
  std::vector<FakeSample> batch = TrainerBatch(0);
  for (FakeSample& sample : batch) sample.weight = 0;
  EXPECT_FALSE(Join(ranks.trainer(0), 0, ranks.MakePart(batch, 0)).dense_squares.has_value());
  batch = TrainerBatch(0);
  batch[0].numeric[0] = std::numeric_limits<float>::infinity();
  batch[0].masked = false;
  batch[0].weight = 1;
  const StepResult result = Join(ranks.trainer(0), 0, ranks.MakePart(batch, 0));
  EXPECT_FALSE(result.finite);
  EXPECT_FALSE(result.dense_squares.has_value());
  EXPECT_EQ(ranks.Weights(0), before);
}

}  // namespace
}  // namespace satrap
