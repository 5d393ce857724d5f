#include "data_loader/batch/record_filter.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

JobConfig Job(double valid, double test) {
  JobConfig job;
  job.mutable_data()->mutable_criteo_tsv();
  job.mutable_data()->mutable_seeded_split()->set_valid_fraction(valid);
  job.mutable_data()->mutable_seeded_split()->set_test_fraction(test);
  return job;
}

TEST(RecordFilterTest, EveryRecordIsInExactlyOneStream) {
  const JobConfig job = Job(0.1, 0.2);
  const RecordFilter train(job, TRAIN_STREAM), valid(job, VALID_STREAM), test(job, TEST_STREAM);
  int counts[3] = {0, 0, 0};
  for (uint64_t position = 0; position < 20000; ++position) {
    const int in[3] = {train.Keeps(3, position), valid.Keeps(3, position), test.Keeps(3, position)};
    ASSERT_EQ(in[0] + in[1] + in[2], 1) << position;
    for (int i = 0; i < 3; ++i) counts[i] += in[i];
  }
  EXPECT_NEAR(counts[0], 14000, 300);
  EXPECT_NEAR(counts[1], 2000, 200);
  EXPECT_NEAR(counts[2], 4000, 250);
}

TEST(RecordFilterTest, FilesOfAStreamTakeThePlaceOfItsFraction) {
  JobConfig job = Job(0.5, 0.4);
  job.mutable_data()->add_valid_files("v");
  const RecordFilter train(job, TRAIN_STREAM), valid(job, VALID_STREAM), test(job, TEST_STREAM);
  int trained = 0;
  for (uint64_t position = 0; position < 10000; ++position) {
    EXPECT_TRUE(valid.Keeps(0, position));
    EXPECT_NE(train.Keeps(0, position), test.Keeps(0, position));
    trained += train.Keeps(0, position);
  }
  EXPECT_NEAR(trained, 6000, 250);
}

TEST(RecordFilterTest, TheSeedAndTheSplitDecide) {
  JobConfig job = Job(0.5, 0);
  const RecordFilter one(job, TRAIN_STREAM);
  job.set_seed(2);
  const RecordFilter two(job, TRAIN_STREAM);
  int same_seed = 0, other_split = 0;
  for (uint64_t position = 0; position < 1000; ++position) {
    same_seed += one.Keeps(0, position) == two.Keeps(0, position);
    other_split += one.Keeps(0, position) == one.Keeps(1, position);
  }
  EXPECT_NEAR(same_seed, 500, 100);
  EXPECT_NEAR(other_split, 500, 100);
}

}  // namespace
}  // namespace satrap
