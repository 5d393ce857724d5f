#include "common/config/testing/validation_check.h"

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

TEST(ValidateTables, AUniformInitializerEndsWhereItBeginsOrAbove) {
  const JobConfig job = SmallJob();
  const std::string path = "tables[0].segments[0].initializer.uniform";
  EXPECT_EQ(ProblemsOf(job, {path + ".low=0.5", path + ".high=0.5"}), "");
  EXPECT_EQ(ProblemsOf(job, {path + ".low=0.5", path + ".high=0.25"}),
            path + ": low must not be above high, got 0.5 and 0.25");
}

TEST(ValidateTables, CowClipStandsAloneAndNeedsMeans) {
  const JobConfig job = SmallJob();
  const std::string path = "tables[0].segments[0].";
  EXPECT_EQ(ProblemsOf(job, {path + "cow_clip=", path + "gradient_clip_norm=2"}),
            path + "gradient_clip_norm: must be 0 with cow_clip, got 2");
  EXPECT_EQ(ProblemsOf(job, {path + "cow_clip=", "tables[0].normalisation=NONE"}),
            path + "cow_clip: needs normalisation GLOBAL_BATCH, got NONE");
}

TEST(ValidateTables, ADampenedMomentumHasTheRateOutside) {
  const std::string path = "tables[0].segments[0].optimizer.";
  EXPECT_EQ(ProblemsOf(SmallJob(), {path + "momentum.dampening=0.5"}),
            path + "momentum.dampening: needs form RATE_OUTSIDE, got 0.5 with RATE_INSIDE");
}

}  // namespace
}  // namespace satrap
