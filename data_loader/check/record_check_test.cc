#include "data_loader/check/record_check.h"

#include <string>

#include "common/config/testing/validation_check.h"
#include "common/config/text_format.h"

namespace satrap {
namespace {

using Fault = RecordCheck::Fault;

// A job with a number `x` that has `transform`, a number `z` that becomes an id, a weighted list
// that a feature reads, and another that none reads.
JobConfig Job(const std::string& transform = "", const std::string& tasks = "") {
  JobConfig job = JobWithData(absl::StrCat(R"(
      record_rules: 1
      csv { columns { name: 'y' kind: LABEL numeric_label: true }
            columns { name: 'x' kind: NUMERIC }
            columns { name: 'z' kind: NUMERIC }
            columns { name: 'tags' kind: MULTI_ID value_separator: ':' }
            columns { name: 'others' kind: MULTI_ID value_separator: ':' }
            columns { name: 'w' kind: WEIGHT } }
      train_files: 'train.csv'
      features { name: 'tags' table: 'ids' }
      features { name: 'bucket' column: 'z' table: 'ids' bucketize { boundaries: 1 } }
      numerics { name: 'scaled' column: 'x' )",
                                           transform, "}"));
  ModelConfig model;
  CHECK_OK(ParseText(tasks, "model", &model));
  job.mutable_model()->MergeFrom(model);
  return job;
}

struct Record {
  float label = 0, x = 0, z = 0, tag = 1, other = 1, weight = 1;
};

// The fault of a record, and the reason.
std::pair<Fault, std::string> Check(const JobConfig& job, const Record& record) {
  RecordBlock block(SchemaOf(job.data()));
  block.BeginRow();
  block.set_label(record.label);
  block.row_numerics()[0] = record.x;
  block.row_numerics()[1] = record.z;
  block.AppendToList(0, 7, record.tag);
  block.AppendToList(1, 7, record.other);
  block.set_weight(record.weight);
  block.CommitRow();
  std::string reason;
  const Fault fault = RecordCheck(job).Check(block, &reason);
  return {fault, reason};
}

TEST(RecordCheckTest, ARecordThatTheLossTakesIsGood) {
  EXPECT_EQ(Check(Job(), {.label = 0.5f}).first, Fault::kNone);
  EXPECT_EQ(Check(Job(), {.label = kMissingLabel}).first, Fault::kNone) << "another may be known";
}

TEST(RecordCheckTest, ARunOfFilesThatBeganBeforeThereWasSuchACheckGoesOnWithoutIt) {
  JobConfig job = Job();
  job.mutable_data()->clear_record_rules();
  EXPECT_EQ(Check(job, {.label = -1, .x = 1e22f}).first, Fault::kNone);
  job.mutable_data()->mutable_kafka();
  EXPECT_EQ(Check(job, {.label = -1}).first, Fault::kLabel) << "its ledger counts offsets";
}

TEST(RecordCheckTest, ARecordIsPredictedWhateverItsLabelIs) {
  JobConfig job = Job();
  job.set_action(JobConfig::PREDICT);
  EXPECT_EQ(Check(job, {.label = -1}).first, Fault::kNone);
  EXPECT_EQ(Check(job, {.label = -1, .x = 1e22f}).first, Fault::kNumber);
}

TEST(RecordCheckTest, ALabelThatIsNoTargetIsNamedWithWhatWouldDo) {
  const auto [fault, reason] = Check(Job(), {.label = -1});
  EXPECT_EQ(fault, Fault::kLabel);
  EXPECT_EQ(reason, "label y: -1 is not a number in [0, 1], which BCE takes");
}

TEST(RecordCheckTest, AClassThatTheModelDoesNotHaveIsRefused) {
  const JobConfig job = Job("", R"(
      layers { name: 'classes' inputs: 'numeric' linear { units: 3 } }
      tasks { name: 'k' output: 'classes' loss: SOFTMAX_CROSS_ENTROPY })");
  EXPECT_EQ(Check(job, {.label = 2}).first, Fault::kNone);
  EXPECT_EQ(Check(job, {.label = 7}).second,
            "label y: 7 is not a whole number from 0 to 2, the classes of SOFTMAX_CROSS_ENTROPY");
}

TEST(RecordCheckTest, NumbersBeyondTheLimitAreRefusedWhereTheyReachTheNetwork) {
  EXPECT_EQ(Check(Job(), {.x = 1e15f}).first, Fault::kNone);
  EXPECT_EQ(Check(Job(), {.x = kMissingNumeric}).first, Fault::kNone);
  EXPECT_EQ(Check(Job(), {.x = -1e22f}).second,
            "column 'x': -1e+22 is beyond 1e15, the largest number that a model takes");
  EXPECT_EQ(Check(Job(), {.tag = 1e16f}).second,
            "column 'tags': 1e+16 is beyond 1e15, the largest number that a model takes");
  EXPECT_EQ(Check(Job(), {.weight = 1e16f}).second,
            "the weight: 1e+16 is beyond 1e15, the largest number that a model takes");
  const JobConfig regression = Job("", "tasks { name: 'a' loss: MSE }");
  EXPECT_EQ(Check(regression, {.label = 1e16f}).first, Fault::kLabel);
  // Large numbers are allowed where they do not reach the model: `z` becomes an id (a bucket), and
  // no feature reads the other list.
  EXPECT_EQ(Check(Job(), {.z = 1e22f, .other = 1e22f}).first, Fault::kNone);
}

TEST(RecordCheckTest, WhatCountsIsTheNumberAfterItsTransform) {
  EXPECT_EQ(Check(Job("transform: LOG1P"), {.x = 3e38f}).first, Fault::kNone);
  const JobConfig wide = Job("transform: MIN_MAX max: 1e10");
  EXPECT_EQ(Check(wide, {.x = 1e24f}).first, Fault::kNone);
  EXPECT_EQ(Check(wide, {.x = 1e26f}).first, Fault::kNumber);
  const JobConfig narrow = Job("transform: STANDARDISE mean: 5 stddev: 0.001");
  EXPECT_EQ(Check(narrow, {.x = 1e11f}).first, Fault::kNone);
  EXPECT_EQ(Check(narrow, {.x = 2e12f}).second,
            "column 'x' (2e+12 in the data): 2e+15 is beyond 1e15, the largest number that a model "
            "takes");
  EXPECT_EQ(Check(narrow, {.x = 3e38f}).first, Fault::kNumber) << "it becomes infinite";
}

}  // namespace
}  // namespace satrap
