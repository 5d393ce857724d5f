#include "deploy/cli/kafka_demo/kafka_demo_job.h"

#include "common/config/job_config.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobConfig DemoJob() {
  JobConfig job;
  const absl::Status parsed = ParseTextFile("deploy/jobs/kafka_demo.textproto", &job);
  EXPECT_TRUE(parsed.ok()) << parsed;
  // The zoo's layers do not matter here.
  LayerConfig* const layer = job.mutable_model()->add_layers();
  layer->set_name("logit");
  layer->add_inputs("*.linear");
  layer->mutable_sum();
  ResolveJob(&job);
  return job;
}

std::vector<int64_t> Ends(const JobConfig& job) {
  std::vector<int64_t> ends;
  for (const KafkaOffset& end : job.data().kafka().end().offsets()) ends.push_back(end.offset());
  return ends;
}

TEST(SetDemoTopics, TheTrainStreamEndsAfterTheLastRecordThatIsWritten) {
  JobConfig job = DemoJob();
  ASSERT_TRUE(SetDemoTopics("127.0.0.1:5", 10, &job).ok());
  EXPECT_THAT(Ends(job), ElementsAre(3, 3, 2, 2));
  EXPECT_EQ(job.data().kafka().brokers(0), "127.0.0.1:5");
  EXPECT_EQ(job.data().test_kafka().brokers(0), "127.0.0.1:5");
  EXPECT_EQ(job.data().test_kafka().end().at(), KafkaEnd::AT_START);
}

TEST(SetDemoTopics, OrNever) {
  JobConfig job = DemoJob();
  ASSERT_TRUE(SetDemoTopics("127.0.0.1:5", 0, &job).ok());
  EXPECT_EQ(job.data().kafka().end().at(), KafkaEnd::NEVER);
}

TEST(SetDemoTopics, RefusesAJobOfSeveralTopics) {
  JobConfig job = DemoJob();
  job.mutable_data()->mutable_kafka()->add_topics("views");
  EXPECT_THAT(std::string(SetDemoTopics("127.0.0.1:5", 0, &job).message()),
              HasSubstr("must train from one topic"));
}

}  // namespace
}  // namespace satrap
