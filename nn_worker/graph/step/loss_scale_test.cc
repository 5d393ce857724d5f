#include "nn_worker/graph/step/loss_scale.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig F16Job(int global_batch_size) {
  JobConfig job;
  job.mutable_nn_worker()->set_precision(NnWorkerConfig::F16);
  job.set_global_batch_size(global_batch_size);
  return job;
}

TEST(LossScaleTest, IsOfTheMeanLossAndTheGradientsAreSums) {
  // A scale of 2^16 for the mean over 4096 samples is 2^4 for their sum. For other batch sizes the
  // scale is rounded to a power of two.
  for (const auto& [batch, scale] : {std::pair<int, float>{4096, 16},
                                     {1, 65536},
                                     {8192, 8},
                                     {5000, 16},
                                     {6000, 8},
                                     {4194304, 0x1p-6f}}) {
    const GradientScale gradient = GradientScaleOf(F16Job(batch), RunPosition());
    EXPECT_EQ(gradient.scale, scale) << batch;
    EXPECT_EQ(LossScaleStateOf(gradient, batch).scale(), 65536) << batch;
  }
}

TEST(LossScaleTest, MovesBetweenOneAndTwoToTheTwentyFourUnlessItIsStatic) {
  JobConfig job = F16Job(4096);
  const GradientScale dynamic = GradientScaleOf(job, RunPosition());
  EXPECT_EQ(dynamic.rule.growth_steps, 2000u);
  EXPECT_EQ(dynamic.rule.growth, 2);
  EXPECT_EQ(dynamic.rule.backoff, 0.5f);
  EXPECT_EQ(dynamic.rule.least, 0x1p-12f);
  EXPECT_EQ(dynamic.rule.most, 0x1p12f);
  job.mutable_nn_worker()->mutable_loss_scale()->set_dynamic(false);
  job.mutable_nn_worker()->mutable_loss_scale()->set_initial(1024);
  const GradientScale constant = GradientScaleOf(job, RunPosition());
  EXPECT_EQ(constant.scale, 0.25f);
  EXPECT_FALSE(constant.moves());
}

TEST(LossScaleTest, GoesOnFromACut) {
  JobConfig job = F16Job(4096);
  RunPosition position;
  *position.mutable_loss_scale() = LossScaleStateOf({2, 77, {}}, 4096);
  const GradientScale gradient = GradientScaleOf(job, position);
  EXPECT_EQ(gradient.scale, 2);
  EXPECT_EQ(gradient.clean_steps, 77u);
  job.mutable_nn_worker()->mutable_loss_scale()->set_dynamic(false);
  EXPECT_EQ(GradientScaleOf(job, position).scale, 16) << "a static scale is the job's";
}

TEST(LossScaleTest, OtherPrecisionsHaveNone) {
  for (const auto precision : {NnWorkerConfig::F32, NnWorkerConfig::BF16}) {
    JobConfig job = F16Job(4096);
    job.mutable_nn_worker()->set_precision(precision);
    EXPECT_EQ(GradientScaleOf(job, RunPosition()).scale, 1);
    EXPECT_FALSE(GradientScaleOf(job, RunPosition()).moves());
  }
}

}  // namespace
}  // namespace satrap
