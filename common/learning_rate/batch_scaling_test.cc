#include "common/learning_rate/batch_scaling.h"

#include "common/config/testing/validation_check.h"

namespace satrap {
namespace {

// A job whose values (learning rate .5, l2 .25 and dense learning rate 2) were chosen for a batch
// that is 16 times smaller.
JobConfig Scaled(BatchScalingConfig::Rule rule) {
  JobConfig job = SmallJob();
  job.set_global_batch_size(64);
  job.mutable_batch_scaling()->set_rule(rule);
  job.mutable_batch_scaling()->set_base_batch_size(4);
  SegmentConfig* segment = job.mutable_tables(0)->mutable_segments(0);
  segment->mutable_optimizer()->set_learning_rate(0.5f);
  segment->set_l2(0.25f);
  job.mutable_dense_optimizer()->set_learning_rate(2);
  EXPECT_EQ(ProblemsOf(job), "");
  return job;
}

void ExpectEffective(BatchScalingConfig::Rule rule, float rate, float l2, float dense_rate) {
  const JobConfig job = Scaled(rule);
  const TableConfig table = EffectiveTable(job, job.tables(0));
  EXPECT_EQ(table.segments(0).optimizer().learning_rate(), rate);
  EXPECT_EQ(table.segments(0).l2(), l2);
  EXPECT_EQ(EffectiveDenseOptimizer(job).learning_rate(), dense_rate);
}

TEST(BatchScaling, EachRuleScalesByItsPowersOfTheRatio) {
  ExpectEffective(BatchScalingConfig::NO_SCALING, 0.5f, 0.25f, 2);
  ExpectEffective(BatchScalingConfig::SQRT, 2, 1, 8);
  ExpectEffective(BatchScalingConfig::LINEAR, 8, 0.25f, 32);
  ExpectEffective(BatchScalingConfig::COWCLIP, 0.5f, 4, 8);
}

TEST(BatchScaling, AJobWithoutItIsUsedAsItIs) {
  JobConfig job = Scaled(BatchScalingConfig::LINEAR);
  job.clear_batch_scaling();
  EXPECT_EQ(EffectiveTable(job, job.tables(0)).SerializeAsString(),
            job.tables(0).SerializeAsString());
  EXPECT_EQ(EffectiveDenseOptimizer(job).SerializeAsString(),
            job.dense_optimizer().SerializeAsString());
  EXPECT_EQ(BatchScalingText(job), "");
}

TEST(BatchScaling, TheDenseWarmupIsInSamplesWhateverTheBatch) {
  JobConfig job = Scaled(BatchScalingConfig::COWCLIP);
  job.mutable_batch_scaling()->set_dense_warmup_samples(1000);
  EXPECT_EQ(EffectiveDenseOptimizer(job).learning_rate_schedule().warmup_steps(), 16);
  job.set_global_batch_size(4);
  EXPECT_EQ(EffectiveDenseOptimizer(job).learning_rate_schedule().warmup_steps(), 250);
}

TEST(BatchScaling, TellsTheEffectiveValues) {
  EXPECT_EQ(BatchScalingText(Scaled(BatchScalingConfig::COWCLIP)),
            "batch 64 is 16 x 4, rule COWCLIP: ids.linear learning rate 0.5, l2 4; dense learning "
            "rate 8, warm-up 0 steps");
}

TEST(BatchScaling, NeedsABaseBatchAndOneWarmup) {
  JobConfig job = Scaled(BatchScalingConfig::COWCLIP);
  ExpectRange(job, "batch_scaling.base_batch_size", 1, 1 << 22);
  ExpectRange(job, "batch_scaling.dense_warmup_samples", 0, int64_t{1} << 60);
  EXPECT_EQ(ProblemsOf(job, {"batch_scaling.dense_warmup_samples=9",
                             "dense_optimizer.learning_rate_schedule.warmup_steps=5"}),
            "batch_scaling.dense_warmup_samples: must be 0 with "
            "dense_optimizer.learning_rate_schedule.warmup_steps, got 9");
}

}  // namespace
}  // namespace satrap
