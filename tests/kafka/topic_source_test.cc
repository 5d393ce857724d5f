// Tests the coordinator's queries to a real broker, which turn the start and the end in a job into
// offsets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/kafka/cluster.h"
#include "common/kafka/producer.h"
#include "common/thread/clock.h"
#include "deploy/coordinator/topics/kafka_topic_source.h"
#include "deploy/coordinator/topics/topic_resolution.h"
#include "tests/kafka/kafka_broker.h"
#include "tests/kafka/transactions.h"

namespace satrap {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TopicSourceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { broker_ = KafkaBroker::Start().release(); }
  static void TearDownTestSuite() { delete broker_; }
  void SetUp() override {
    if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
  }
  void MakeTopic(int partitions) {
    topic_ = broker_->NewTopic(partitions);
    stream_.path = "data.kafka";
    stream_.config = broker_->Config(topic_);
    stream_.config.set_group_id("group of " + topic_);
  }
  KafkaPartition Partition(int32_t partition) const { return {topic_, partition}; }

  absl::StatusOr<ResolvedTopics> Resolve() {
    return ResolveTopics(JobConfig(), stream_, absl::ToUnixMillis(absl::Now()), &source_);
  }
  // "START..END" for each partition, or "START.." for a partition without an end.
  std::vector<std::string> Resolved() {
    const auto resolved = Resolve();
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    std::vector<std::string> texts;
    if (!resolved.ok()) return texts;
    for (const TopicPartition& partition : resolved->topics.partitions()) {
      texts.push_back(absl::StrCat(partition.start(), ".."));
      if (partition.has_end()) absl::StrAppend(&texts.back(), partition.end());
    }
    return texts;
  }

  static KafkaBroker* broker_;
  std::string topic_;
  TopicInput stream_;
  KafkaTopicSource source_;
};

KafkaBroker* TopicSourceTest::broker_ = nullptr;

TEST_F(TopicSourceTest, LatestAndAtStartAreWhereTheTopicEndsNow) {
  MakeTopic(2);
  broker_->Produce(Partition(0), {"a", "b", "c"});
  stream_.config.mutable_end()->set_at(KafkaEnd::AT_START);
  EXPECT_THAT(Resolved(), ElementsAre("0..3", "0..0"));
  stream_.config.mutable_start()->set_at(KafkaStart::LATEST);
  stream_.config.mutable_end()->set_at(KafkaEnd::NEVER);
  EXPECT_THAT(Resolved(), ElementsAre("3..", "0.."));
  EXPECT_EQ(Resolve()->topics.cluster_id(), (*KafkaCluster::Connect(stream_.config))->id());
}

TEST_F(TopicSourceTest, ATimeIsTheFirstMessageNotBeforeIt) {
  MakeTopic(2);
  auto producer = KafkaProducer::Create(stream_.config);
  ASSERT_TRUE(producer.ok()) << producer.status();
  for (int i = 0; i < 10; ++i) {
    KafkaProducer::Message message;
    message.topic = topic_;
    message.partition = 0;
    message.value = "x";
    message.time_ms = 1700000000000 + 1000 * i;  // from 2023-11-14T22:13:20Z on
    ASSERT_TRUE((*producer)->Send(message).ok());
  }
  ASSERT_TRUE((*producer)->Flush(absl::Seconds(60)).ok());
  stream_.config.mutable_start()->set_time("2023-11-14T22:13:22.5Z");
  stream_.config.mutable_end()->set_time("2023-11-14T23:13:27+01:00");
  EXPECT_THAT(Resolved(), ElementsAre("3..7", "0..0"));
}

TEST_F(TopicSourceTest, AnOpenTransactionIsAfterTheEnd) {
  MakeTopic(1);
  broker_->Produce(Partition(0), {"a", "b", "c"});
  TransactionalProducer transaction(broker_->address(), "of " + topic_);
  transaction.Begin();
  transaction.Send(Partition(0), "d");
  transaction.Flush();
  broker_->Produce(Partition(0), {"e"});
  stream_.config.mutable_end()->set_at(KafkaEnd::AT_START);
  EXPECT_THAT(Resolved(), ElementsAre("0..3")) << "nothing after it can be read yet";
  transaction.Commit();
  // The broker writes the mark of the commit a moment after it has answered.
  const int64_t deadline_ms = MonotonicMs() + 60000;
  while (Resolved()[0] == "0..3" && MonotonicMs() < deadline_ms) {
  }
  EXPECT_THAT(Resolved(), ElementsAre("0..6")) << "with the mark of the transaction";
}

TEST_F(TopicSourceTest, ExpiredOffsetsAreRefusedOrSkipped) {
  MakeTopic(1);
  broker_->Produce(Partition(0), {"a", "b", "c", "d"});
  ASSERT_TRUE(broker_->admin().DeleteRecords({Partition(0), 3}).ok());
  KafkaOffset* start = stream_.config.mutable_start()->add_offsets();
  start->set_topic(topic_);
  start->set_partition(0);
  start->set_offset(1);
  EXPECT_THAT(Resolve().status().ToString(),
              AllOf(HasSubstr("OUT_OF_RANGE"), HasSubstr("offset 1 of " + topic_ + "/0"),
                    HasSubstr("still has is 3")));
  stream_.config.set_on_lost_offsets(KafkaConfig::SKIP);
  EXPECT_THAT(Resolved(), ElementsAre("3.."));
  EXPECT_THAT(Resolve()->warnings, ElementsAre(HasSubstr("offset 1 of " + topic_ + "/0")));
  start->set_offset(5);
  EXPECT_THAT(Resolve().status().ToString(), HasSubstr("ends at 4"));
}

TEST_F(TopicSourceTest, AddedPartitionsAreFoundAndBeginAtTheirFirstMessage) {
  MakeTopic(1);
  stream_.config.mutable_start()->set_at(KafkaStart::LATEST);
  const StreamTopics known = Resolve()->topics;
  ASSERT_TRUE(broker_->admin().AddPartitions(topic_, 3).ok());
  broker_->Produce(Partition(2), {"a"});
  const auto added = FindNewPartitions(stream_, known, &source_);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(PartitionNames(*added), absl::StrCat(topic_, "/1, ", topic_, "/2"));
  EXPECT_EQ(added->partitions(1).start(), 0u);
  EXPECT_TRUE(CheckTopics(stream_, known, &source_).ok());
}

TEST_F(TopicSourceTest, TheGroupsOffsetsAreCommittedAndReadingBeginsThere) {
  MakeTopic(2);
  broker_->Produce(Partition(0), {"a", "b", "c"});
  const absl::Status status = source_.Commit(stream_.config, {KafkaPlace{Partition(0), 2}});
  ASSERT_TRUE(status.ok()) << status;
  const auto cluster = KafkaCluster::Connect(stream_.config);
  const auto committed = (*cluster)->Committed({Partition(0), Partition(1)});
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_THAT(*committed, ElementsAre(absl::optional<int64_t>(2), absl::nullopt));
  stream_.config.mutable_start()->set_at(KafkaStart::GROUP);
  EXPECT_THAT(Resolved(), ElementsAre("2..", "0.."));
}

TEST_F(TopicSourceTest, ABrokerThatComesBackIsAskedAgain) {
  MakeTopic(1);
  const StreamTopics known = Resolve()->topics;
  KafkaTopicSource source(absl::Seconds(2));
  ASSERT_TRUE(CheckTopics(stream_, known, &source).ok());
  broker_->Kill();
  const absl::Status away = CheckTopics(stream_, known, &source);
  EXPECT_EQ(away.code(), absl::StatusCode::kUnavailable) << away;
  broker_->Restart();
  absl::Status back = CheckTopics(stream_, known, &source);
  // The first request may still use the broken connection.
  const int64_t deadline_ms = MonotonicMs() + 60000;
  while (absl::IsUnavailable(back) && MonotonicMs() < deadline_ms) {
    back = CheckTopics(stream_, known, &source);
  }
  EXPECT_TRUE(back.ok()) << back;
}

TEST_F(TopicSourceTest, ATopicThatDoesNotExistIsNamedAtOnce) {
  MakeTopic(1);
  stream_.config.set_topics(0, topic_ + "x");
  const int64_t begin_ms = MonotonicMs();
  EXPECT_THAT(Resolve().status().ToString(),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("no topic " + topic_ + "x")));
  EXPECT_LT(MonotonicMs() - begin_ms, 15000);
  stream_.config.set_topics(0, topic_);
  stream_.config.set_dead_letter_topic("dead-" + topic_);
  EXPECT_THAT(Resolve().status().ToString(),
              AllOf(HasSubstr("NOT_FOUND"),
                    HasSubstr("data.kafka.dead_letter_topic: there is no topic dead-" + topic_)));
}

TEST(TopicSourceAddressTest, AWrongAddressIsOneMessageInTime) {
  TopicInput stream;
  stream.config.add_brokers(absl::StrCat("127.0.0.1:", FreePorts(1)[0]));
  stream.config.add_topics("clicks");
  KafkaTopicSource source;
  const int64_t begin_ms = MonotonicMs();
  const absl::Status status = ResolveTopics(JobConfig(), stream, 0, &source).status();
  EXPECT_LT(MonotonicMs() - begin_ms, 15000);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(stream.config.brokers(0)));
}

}  // namespace
}  // namespace satrap
