#include "common/config/validation_check.h"

namespace satrap {
namespace {

TEST(ValidateTables, ATableHasANameOfItsOwn) {
  EXPECT_EQ(ProblemsOf(JobWithData("numerics { name: 'I1' } synthetic { interacting_features: 0 }"),
                       {"tables[0].name="}),
            "tables[0]: needs a name of its own, got ''");
  JobConfig job = SmallJob();
  *job.add_tables() = job.tables(0);
  job.mutable_tables(1)->set_id(1);
  EXPECT_EQ(ProblemsOf(job), "tables[1]: needs a name of its own, got 'ids'");
  EXPECT_EQ(ProblemsOf(job, {"tables[1].name=other"}), "");
}

TEST(ValidateTables, ATableHasAnIdOfItsOwn) {
  JobConfig job = SmallJob();
  job.mutable_tables(0)->clear_id();
  EXPECT_EQ(ProblemsOf(job), "tables[0].id: must be given");
  job = SmallJob();
  *job.add_tables() = job.tables(0);
  job.mutable_tables(1)->set_name("other");
  EXPECT_EQ(ProblemsOf(job), "tables[1].id: 0 is taken");
}

TEST(ValidateTables, AnIdHasSixteenBits) {
  ExpectValues(SmallJob(), "tables[0].id", {"0", "65535"}, {"65536", "4294967295"},
               "in [0, 65535]");
}

TEST(ValidateTables, ATableHasSegments) {
  JobConfig job = SmallJob();
  job.mutable_tables(0)->clear_segments();
  EXPECT_EQ(ProblemsOf(job), "tables[0].segments: must not be empty");
}

TEST(ValidateTables, ASegmentHasANameOfItsOwn) {
  JobConfig job = SmallJob();
  EXPECT_EQ(ProblemsOf(job, {"tables[0].segments[0].name="}),
            "tables[0].segments[0]: needs a name of its own, got ''");
  *job.mutable_tables(0)->add_segments() = job.tables(0).segments(0);
  EXPECT_EQ(ProblemsOf(job), "tables[0].segments[1]: needs a name of its own, got 'linear'");
}

TEST(ValidateTables, EveryRowStepsInEveryStepOnlyInModeSync) {
  const std::string semantics = "tables[0].semantics=GLOBAL";
  EXPECT_EQ(ProblemsOf(SmallJob(), {semantics}),
            "tables[0].semantics: GLOBAL needs mode SYNC, got HYBRID");
  EXPECT_EQ(ProblemsOf(SmallJob(), {semantics, "mode=SYNC"}), "");
}

TEST(ValidateTables, DenseL2NeedsEveryRow) {
  const std::string dense = "tables[0].segments[0].l2_mode=DENSE";
  EXPECT_EQ(ProblemsOf(SmallJob(), {dense, "mode=SYNC"}),
            "tables[0].segments[0].l2_mode: DENSE needs semantics GLOBAL, got LAZY");
  EXPECT_EQ(ProblemsOf(SmallJob(), {dense, "mode=SYNC", "tables[0].semantics=GLOBAL"}), "");
}

TEST(ValidateTables, BoundsDims) { ExpectRange(SmallJob(), "tables[0].segments[0].dim", 1, 4096); }

TEST(ValidateTables, BoundsTheConstantsOfTheTable) {
  const JobConfig job = SmallJob();
  ExpectRange(job, "tables[0].reserve_rows", 0, int64_t{1} << 40);
  ExpectRange(job, "tables[0].learning_rate_schedule.warmup_steps", 0, int64_t{1} << 60);
}

TEST(ValidateTables, BoundsTheConstantsOfInitializers) {
  const JobConfig job = SmallJob();
  const std::string path = "tables[0].segments[0].initializer.";
  ExpectFinite(job, path + "constant.value");
  ExpectFinite(job, path + "normal.mean");
  ExpectNotNegative(job, path + "normal.stddev");
  for (const char* value : {"nan", "-inf"}) {
    EXPECT_EQ(ProblemsOf(job, {path + "uniform.low=" + value}),
              path + "uniform.low: must be finite, got " + value);
  }
  for (const char* value : {"nan", "inf"}) {
    EXPECT_EQ(ProblemsOf(job, {path + "uniform.high=" + value}),
              path + "uniform.high: must be finite, got " + value);
  }
}

TEST(ValidateTables, AUniformInitializerEndsWhereItBeginsOrAbove) {
  const JobConfig job = SmallJob();
  const std::string path = "tables[0].segments[0].initializer.uniform";
  EXPECT_EQ(ProblemsOf(job, {path + ".low=0.5", path + ".high=0.5"}), "");
  EXPECT_EQ(ProblemsOf(job, {path + ".low=0.5", path + ".high=0.25"}),
            path + ": low must not be above high, got 0.5 and 0.25");
}

TEST(ValidateTables, BoundsTheLimitsOfASegment) {
  const JobConfig job = SmallJob();
  const std::string path = "tables[0].segments[0].";
  ExpectNotNegative(job, path + "l2");
  ExpectNotNegative(job, path + "gradient_clip_norm");
  ExpectNotNegative(job, path + "weight_bound");
  ExpectNotNegative(job, path + "cow_clip.ratio");
  ExpectPositive(job, path + "cow_clip.floor");
}

TEST(ValidateTables, CowClipStandsAloneAndNeedsMeans) {
  const JobConfig job = SmallJob();
  const std::string path = "tables[0].segments[0].";
  EXPECT_EQ(ProblemsOf(job, {path + "cow_clip=", path + "gradient_clip_norm=2"}),
            path + "gradient_clip_norm: must be 0 with cow_clip, got 2");
  EXPECT_EQ(ProblemsOf(job, {path + "cow_clip=", "tables[0].normalisation=NONE"}),
            path + "cow_clip: needs normalisation GLOBAL_BATCH, got NONE");
}

TEST(ValidateTables, BoundsSchedules) {
  const JobConfig job = SmallJob();
  const std::string path = "tables[0].learning_rate_schedule.";
  for (const char* steps : {"step.every_steps", "exponential.decay_steps", "polynomial.decay_steps",
                            "cosine.decay_steps", "cool_down.total_steps"}) {
    ExpectRange(job, path + steps, 1, int64_t{1} << 60);
  }
  EXPECT_EQ(ProblemsOf(job, {path + "cool_down.share=0.2"}),
            path + "cool_down.total_steps: must be in [1, 1152921504606846976], got 0");
  EXPECT_EQ(ProblemsOf(job, {path + "cosine.decay_steps=5", path + "cosine.end_factor=1.5"}),
            path + "cosine.end_factor: must be in [0, 1], got 1.5");
}

TEST(ValidateTables, BoundsTheConstantsOfOptimizers) {
  const JobConfig job = SmallJob();
  const std::string path = "tables[0].segments[0].optimizer.";
  ExpectPositive(job, path + "learning_rate");
  ExpectNotNegative(job, path + "adagrad.initial_accumulator");
  ExpectPositive(job, path + "adagrad.epsilon");
  ExpectNotNegative(job, path + "rowwise_adagrad.initial_accumulator");
  ExpectPositive(job, path + "rowwise_adagrad.epsilon");
  ExpectDecay(job, path + "adam.beta1");
  ExpectDecay(job, path + "adam.beta2");
  ExpectPositive(job, path + "adam.epsilon");
  EXPECT_EQ(ProblemsOf(job, {path + "sgd="}), "");
  ExpectDecay(job, path + "momentum.mu");
  EXPECT_EQ(ProblemsOf(job, {path + "momentum.dampening=0.5"}),
            path + "momentum.dampening: needs form RATE_OUTSIDE, got 0.5 with RATE_INSIDE");
  ExpectDecay(job, path + "nesterov.mu");
  ExpectNotNegative(job, path + "sgd_l1.l1");
  ExpectDecay(job, path + "decayed_adagrad.decay");
  ExpectDecay(job, path + "rmsprop.rho");
  ExpectDecay(job, path + "rmsprop.momentum");
  ExpectDecay(job, path + "adadelta.rho");
  ExpectDecay(job, path + "amsgrad.beta2");
  ExpectNotNegative(job, path + "adamw.weight_decay");
  ExpectPositive(job, path + "ftrl.beta");
  ExpectNotNegative(job, path + "ftrl.lambda1");
  ExpectDecay(job, path + "ftml.beta1");
}

}  // namespace
}  // namespace satrap
