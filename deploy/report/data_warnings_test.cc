#include "deploy/report/data_warnings.h"

#include "common/config/testing/validation_check.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobConfig Job(const std::string& tasks = "") {
  JobConfig job = JobWithData(R"(
      csv { columns { name: 'y' kind: LABEL numeric_label: true }
            columns { name: 'user' kind: ID } }
      train_files: 'train.csv'
      features { name: 'user' table: 'ids' })");
  ModelConfig model;
  CHECK_OK(ParseText(tasks, "model", &model));
  job.mutable_model()->MergeFrom(model);
  return job;
}

// A status with one loader, which has read `count` labels from `least` to `largest`.
StatusAnswer Labels(uint64_t generation, uint32_t loader, uint64_t count, float least,
                    float largest) {
  StatusAnswer status;
  status.set_generation(generation);
  RoleStatus* const role = status.add_roles();
  role->mutable_member()->set_index(loader);
  LabelRange* const range = role->mutable_loader()->add_labels();
  range->set_count(count);
  if (count == 0) return status;
  range->set_least(least);
  range->set_largest(largest);
  return status;
}

StatusAnswer Warning(uint64_t generation, const std::string& text) {
  StatusAnswer status;
  status.set_generation(generation);
  status.add_roles()->mutable_loader()->add_warnings(text);
  return status;
}

TEST(DataWarnings, AreTakenOnceAndKeptOverGenerations) {
  DataWarnings warnings;
  EXPECT_THAT(warnings.TakeNew(Warning(1, "x is far")), ElementsAre("x is far"));
  EXPECT_THAT(warnings.TakeNew(Warning(1, "x is far")), IsEmpty());
  EXPECT_THAT(warnings.TakeNew(StatusAnswer()), IsEmpty());
  EXPECT_THAT(warnings.TakeNew(Warning(2, "y is far")), ElementsAre("y is far"));
  EXPECT_THAT(warnings.All(Job()), ElementsAre("x is far", "y is far"));
}

TEST(DataWarnings, TrainingLabelsThatAreAllEqualTeachNothing) {
  DataWarnings warnings;
  warnings.TakeNew(Labels(1, 0, 2000, 1, 1));
  warnings.TakeNew(Labels(1, 1, 500, 1, 1));
  EXPECT_THAT(warnings.All(Job()),
              ElementsAre("label y: all 2,500 training labels are 1, from which BCE learns nothing "
                          "but that number"));
  DataWarnings later(/*since_begin=*/false);
  later.TakeNew(Labels(1, 0, 2000, 1, 1));
  EXPECT_THAT(later.All(Job()), IsEmpty()) << "the labels before are not known";
  JobConfig scores = Job();
  scores.set_action(JobConfig::EVALUATE);
  EXPECT_THAT(warnings.All(scores), IsEmpty());
}

TEST(DataWarnings, ADifferentLabelAtAnyLoaderInAnyGenerationIsEnough) {
  DataWarnings loaders;
  loaders.TakeNew(Labels(1, 0, 2000, 1, 1));
  loaders.TakeNew(Labels(1, 1, 1, 0, 0));
  EXPECT_THAT(loaders.All(Job()), IsEmpty());
  DataWarnings generations;
  generations.TakeNew(Labels(1, 0, 2000, 0, 1));
  generations.TakeNew(Labels(2, 0, 0, 0, 0));
  generations.TakeNew(Labels(2, 0, 10, 1, 1));
  EXPECT_THAT(generations.All(Job()), IsEmpty());
}

TEST(DataWarnings, AreKeptForACommandThatGoesOnWithTheRun) {
  DataWarnings before;
  before.TakeNew(Warning(1, "x is far"));
  before.TakeNew(Labels(1, 0, 2000, 1, 1));
  DataWarnings after(/*since_begin=*/false);
  after.Restore(before.KeptAtEnd());
  EXPECT_THAT(after.TakeNew(Warning(2, "x is far")), IsEmpty()) << "it was told before";
  after.TakeNew(Labels(2, 0, 500, 1, 1));
  EXPECT_THAT(after.All(Job()),
              ElementsAre("x is far", HasSubstr("all 2,500 training labels are 1")));
  after.TakeNew(Labels(2, 1, 1, 0, 0));
  EXPECT_THAT(after.All(Job()), ElementsAre("x is far"));
}

TEST(DataWarnings, OfARunWhoseBeginningNobodyHasSeenNothingIsSaidOfAllLabels) {
  DataWarnings before(/*since_begin=*/false);
  before.TakeNew(Labels(3, 0, 2000, 1, 1));
  DataWarnings after;
  after.Restore(before.KeptAtEnd());
  after.TakeNew(Labels(4, 0, 2000, 1, 1));
  EXPECT_THAT(after.All(Job()), IsEmpty());
}

// The killed command may not have seen the last labels. These may differ from the labels before,
// and their records may already be in a cut.
TEST(DataWarnings, AfterACommandThatWasKilledNothingIsSaidOfAllLabels) {
  DataWarnings before;
  before.TakeNew(Warning(1, "x is far"));
  before.TakeNew(Labels(1, 0, 2000, 1, 1));
  const LoaderProgress kept = before.Kept();
  before.TakeNew(Labels(1, 0, 2001, 0, 1));
  DataWarnings after;
  after.Restore(kept);
  after.TakeNew(Labels(2, 0, 2000, 1, 1));
  EXPECT_THAT(after.All(Job()), ElementsAre("x is far"));
  DataWarnings later;
  later.Restore(after.KeptAtEnd());
  later.TakeNew(Labels(3, 0, 2000, 1, 1));
  EXPECT_THAT(later.All(Job()), ElementsAre("x is far")) << "nor is it known later";
}

TEST(DataWarnings, AStopBeforeTheFirstLabelLeavesTheRunSeenFromItsBeginning) {
  DataWarnings before;
  before.TakeNew(Warning(1, "x is far"));
  DataWarnings after;
  after.Restore(before.KeptAtEnd());
  after.TakeNew(Labels(2, 0, 2000, 1, 1));
  EXPECT_THAT(after.All(Job()),
              ElementsAre("x is far", HasSubstr("all 2,000 training labels are 1")));
}

TEST(DataWarnings, PairsNeedBothSides) {
  const JobConfig job = Job("tasks { name: 'rank' loss: BPR }");
  DataWarnings warnings;
  warnings.TakeNew(Labels(1, 0, 10, 3, 5));
  EXPECT_THAT(warnings.All(job), ElementsAre(HasSubstr("in [3, 5], on one side of 1/2")));
  DataWarnings learns;
  learns.TakeNew(Labels(1, 0, 10, 0, 5));
  EXPECT_THAT(learns.All(job), IsEmpty());
}

TEST(DataWarnings, ALabelThatNoLossReadsMayBeConstant) {
  DataWarnings warnings;
  warnings.TakeNew(Labels(1, 0, 10, 1, 1));
  EXPECT_THAT(warnings.All(Job("tasks { name: 'items' loss: SAMPLED_SOFTMAX }")), IsEmpty());
}

}  // namespace
}  // namespace satrap
