#include "deploy/cli/bench/bench_job.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig JobOfFeatures(int n) {
  JobConfig job;
  for (int i = 0; i < n; ++i) {
    job.mutable_data()->mutable_synthetic()->add_vocabulary_sizes(7);
    job.mutable_data()->add_features();
  }
  job.add_tables();
  return job;
}

TEST(SetRows, SharesTheRowsOutAndKeepsTheirSum) {
  for (const int64_t rows : {26, 1000, 20000000}) {
    JobConfig job = JobOfFeatures(26);
    SetRows(rows, &job);
    int64_t sum = 0;
    for (int i = 0; i < 26; ++i) {
      const int64_t size = job.data().synthetic().vocabulary_sizes(i);
      EXPECT_GE(size, 1);
      EXPECT_EQ(job.data().features(i).preload_ids(), size);
      sum += size;
    }
    EXPECT_EQ(sum, rows);
    EXPECT_EQ(job.tables(0).reserve_rows(), rows);
  }
}

TEST(SetRows, TheFirstVocabularyIsTheLargest) {
  JobConfig job = JobOfFeatures(4);
  SetRows(100000, &job);
  const auto& sizes = job.data().synthetic().vocabulary_sizes();
  EXPECT_NEAR(static_cast<double>(sizes.Get(0)) / static_cast<double>(sizes.Get(3)), 8, .01);
}

TEST(MeasuresProducts, OnTheCpuAlone) {
  JobConfig job;
  EXPECT_TRUE(MeasuresProducts(job)) << "the default";
  job.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  EXPECT_FALSE(MeasuresProducts(job));
  job.mutable_nn_worker()->set_device(NnWorkerConfig::HOST);
  EXPECT_FALSE(MeasuresProducts(job));
}

TEST(MedianOf, IsTheMiddle) {
  EXPECT_EQ(MedianOf({}), 0);
  EXPECT_EQ(MedianOf({3, 1, 2}), 2);
  EXPECT_EQ(MedianOf({4, 1, 2, 100}), 3);
}

}  // namespace
}  // namespace satrap
