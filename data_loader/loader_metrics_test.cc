#include "data_loader/loader_metrics.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/rpc.h"
#include "common/testing/manual_executor.h"
#include "common/testing/temp_dir.h"
#include "data_loader/testing/topic_loader_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

// Keeps calls unanswered until the test releases them.
class SlowWorker final : public rpc::Channel {
 public:
  void Call(const rpc::Method&, rpc::Message, int64_t, rpc::Callback done) override {
    calls_.push_back(std::move(done));
  }
  void AcceptAll() {
    for (rpc::Callback& done : std::exchange(calls_, {})) {
      done(rpc::Message{PutBatchAnswerHeader().SerializeAsString(), Buffer()});
    }
  }

 private:
  std::vector<rpc::Callback> calls_;
};

// A job with nine good records and a bad one, in batches of two.
JobConfig Job(const TempDir& dir) {
  JobConfig job;
  job.set_data_root(dir.path());
  DataConfig* data = job.mutable_data();
  data->mutable_libsvm();
  data->add_features()->set_name("features");
  data->add_train_files("train");
  dir.Write("train", "1 3:1\n0 4:1\n1 3:1\n0 4:1\n1 3:1\n0 4:1\nbad\n1 3:1\n0 4:1\n1 9:1\n");
  job.set_global_batch_size(2);
  job.mutable_data_loader()->set_prefetch_parts(1);
  return job;
}

std::string Metric(const char* name, int value) {
  return absl::StrCat(name, "{index=\"0\",role=\"data_loader\"} ", value, "\n");
}

TEST(LoaderMetricsTest, FollowTheLoader) {
  TempDir dir;
  ManualExecutor executor;
  SlowWorker worker;
  StaticSplits lease(0, 1, 1);
  const auto streams = LoaderStreams::Make(Job(dir), 0, nullptr);
  ASSERT_TRUE(streams.ok()) << streams.status();
  (*streams)->MakeSources(&executor, &lease);
  LoaderEngine::Options options;
  options.max_open_parts = 2;
  LoaderEngine engine(options, {(*streams)->sources()[0]}, {&worker}, &executor,
                      [](const absl::Status& status) { ADD_FAILURE() << status; });
  MetricsRegistry registry("data_loader", 0);
  ExportLoaderMetrics(**streams, engine, &registry);
  EXPECT_THAT(registry.Text(), HasSubstr(Metric("satrap_read_records_total", 0)));
  engine.Start();
  executor.AdvanceBy(1'500'000);
  ExportLoaderMetrics(**streams, engine, &registry);
  std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr(Metric("satrap_read_records_total", 9)));
  EXPECT_THAT(text, HasSubstr(Metric("satrap_read_bytes_total", 58)));
  EXPECT_THAT(text, HasSubstr(Metric("satrap_bad_records_total", 1)));
  EXPECT_THAT(text, HasSubstr(Metric("satrap_sent_parts_total", 0)));
  EXPECT_THAT(text, HasSubstr(Metric("satrap_unaccepted_parts", 2)));
  EXPECT_THAT(text, HasSubstr(Metric("satrap_ready_parts", 1)));
  worker.AcceptAll();
  executor.AdvanceBy(1'000'000);
  ExportLoaderMetrics(**streams, engine, &registry);
  text = registry.Text();
  EXPECT_THAT(text, HasSubstr(Metric("satrap_sent_parts_total", 2)));
  EXPECT_THAT(text, HasSubstr(Metric("satrap_sent_samples_total", 4)));
  EXPECT_THAT(text, HasSubstr(Metric("satrap_unaccepted_parts", 2)));
  engine.Stop();
}

class TopicMetricsTest : public TopicLoaderTest {};

TEST_F(TopicMetricsTest, TellWhatIsBehindLateAndLost) {
  JobConfig job = this->Job(JobConfig::HYBRID);
  job.mutable_data()->mutable_kafka()->set_on_lost_offsets(KafkaConfig::SKIP);
  job.mutable_data()->mutable_kafka()->set_dead_letter_topic("dead");
  topics_.Skip({"clicks", 0}, 5);
  topics_.Expire({"clicks", 0}, 5);
  topics_.Write({"clicks", 0}, "1,1\nbad", 2500);
  for (int i = 0; i < 20; ++i) topics_.Write({"clicks", 0}, "1,1", 2500);
  SplitList partitions;
  partitions.add_topics()->set_stream(TRAIN_STREAM);
  partitions.mutable_topics(0)->add_partitions()->set_topic("clicks");
  const auto streams = Begin(job, partitions);
  ASSERT_TRUE(NextPart(streams->sources()[0].sources[0]).ok());
  LoaderEngine engine({}, {}, {}, &executor_, nullptr);
  MetricsRegistry registry("data_loader", 0);
  ExportLoaderMetrics(*streams, engine, &registry);
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr(Metric("satrap_lost_messages_total", 5)));
  EXPECT_THAT(text, HasSubstr(Metric("satrap_dead_letters_total", 1)));
  EXPECT_THAT(text, HasSubstr(Metric("satrap_late_records_total", 0)));
  EXPECT_THAT(text,
              HasSubstr("satrap_topic_watermark_seconds{index=\"0\",role=\"data_loader\"} 2.5"));
  EXPECT_THAT(text, HasSubstr("satrap_topic_lag_messages"));
}

}  // namespace
}  // namespace satrap
