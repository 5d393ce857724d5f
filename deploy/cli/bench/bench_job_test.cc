#include "deploy/cli/bench/bench_job.h"

#include "absl/strings/match.h"
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

TEST(ParseNumberFlags, TakesKnownNumbersOnly) {
  double rows = 0, kills = 10;
  const auto parse = [&](const std::vector<std::string>& flags) {
    return ParseNumberFlags("recovery", flags, {{"--rows", &rows}, {"--kills", &kills}});
  };
  EXPECT_TRUE(parse({"--rows=1e6"}).ok());
  EXPECT_EQ(rows, 1e6);
  EXPECT_EQ(kills, 10);
  for (const std::string flag : {"--row=1", "--rows", "--rows=", "--rows=x", "--kills=-1"}) {
    EXPECT_EQ(parse({flag}).message(),
              "bench recovery does not take " + flag + "; it takes --rows=N --kills=N");
  }
}

TEST(ParseDeepFmFlags, TakesOneSourceOfData) {
  EXPECT_TRUE(ParseDeepFmFlags({}).ok());
  EXPECT_TRUE(ParseDeepFmFlags({"--from_file=day.tsv"}).ok());
  const auto topic =
      ParseDeepFmFlags({"--from_topic=clicks", "--brokers=b:1", "--wire=bf16", "--precision=f16"});
  ASSERT_TRUE(topic.ok()) << topic.status();
  EXPECT_EQ(topic->from_topic, "clicks");
  EXPECT_EQ(topic->brokers, "b:1");
  EXPECT_EQ(topic->wire, "BF16");
  EXPECT_EQ(topic->precision, "F16");
  const std::vector<std::vector<std::string>> refused = {
      {"--from_topic=clicks"},
      {"--brokers=b:1"},
      {"--from_file=day.tsv", "--from_topic=clicks", "--brokers=b:1"}};
  for (const std::vector<std::string>& flags : refused) {
    EXPECT_EQ(ParseDeepFmFlags(flags).status().message(),
              "bench deepfm takes --from_topic and --brokers together, and not with --from_file");
  }
  for (const std::string flag : {"--from_topic", "--from_topic=", "--topic=x", "--seconds=-1"}) {
    const absl::Status status = ParseDeepFmFlags({flag}).status();
    EXPECT_TRUE(absl::StartsWith(status.message(), "bench deepfm does not take " + flag + ";"))
        << status;
  }
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
