// Tests KafkaCluster, KafkaAdmin and KafkaProducer against a real broker.

#include "common/kafka/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/kafka/admin.h"
#include "common/kafka/producer.h"
#include "common/thread/clock.h"
#include "tests/kafka/kafka_broker.h"

namespace satrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class KafkaClusterTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { broker_ = KafkaBroker::Start().release(); }
  static void TearDownTestSuite() { delete broker_; }
  void SetUp() override {
    if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
    auto cluster = KafkaCluster::Connect(broker_->Config(""));
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  static KafkaBroker* broker_;
  std::unique_ptr<KafkaCluster> cluster_;
};

KafkaBroker* KafkaClusterTest::broker_ = nullptr;

TEST_F(KafkaClusterTest, TheClusterKeepsItsIdOverARestart) {
  const std::string id = cluster_->id();
  EXPECT_FALSE(id.empty());
  broker_->Kill();
  broker_->Restart();
  const auto again = KafkaCluster::Connect(broker_->Config(""));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->id(), id);
}

TEST_F(KafkaClusterTest, PartitionsOfNamedTopicsAndOfAPatternAreSorted) {
  broker_->MakeTopic("clicks", 2);
  broker_->MakeTopic("clicks-bad", 1);
  broker_->MakeTopic("clips", 1);
  KafkaConfig config = broker_->Config("clips");
  config.set_topic_pattern("clicks*");
  config.set_dead_letter_topic("clicks-bad");
  const auto partitions = cluster_->Partitions(config);
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_EQ(*partitions, (std::vector<KafkaPartition>{{"clicks", 0}, {"clicks", 1}, {"clips", 0}}));
  ASSERT_TRUE(broker_->admin().AddPartitions("clips", 3).ok());
  // The controller confirms new partitions before the broker's own metadata lists them.
  const auto is_listed = [&] {
    const auto all = cluster_->AllPartitions();
    return all.ok() && std::count(all->begin(), all->end(), KafkaPartition{"clips", 2}) == 1;
  };
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  bool listed = is_listed();
  while (!listed && absl::Now() < deadline) listed = is_listed();
  EXPECT_TRUE(listed);
}

TEST_F(KafkaClusterTest, ATopicThatDoesNotExistIsNamedWithTheNearestOne) {
  broker_->MakeTopic("orders", 1);
  const auto unknown = cluster_->Partitions(broker_->Config("order"));
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.status().message()),
              AllOf(HasSubstr("no topic order at " + broker_->address()),
                    HasSubstr("did you mean orders?")));
  KafkaConfig config = broker_->Config("");
  config.set_topic_pattern("nothing*");
  EXPECT_EQ(cluster_->Partitions(config).status().code(), absl::StatusCode::kNotFound);
  const auto ranges = cluster_->Ranges({KafkaPartition{"orders", 9}});
  EXPECT_EQ(ranges.status().code(), absl::StatusCode::kNotFound) << ranges.status();
  EXPECT_THAT(std::string(ranges.status().message()), HasSubstr("orders/9"));
}

TEST_F(KafkaClusterTest, RangesAndTimesKeepTheOrderOfThePartitions) {
  const std::string a = broker_->NewTopic(2);
  const std::string b = broker_->NewTopic(1);
  auto producer = KafkaProducer::Create(broker_->Config(""));
  ASSERT_TRUE(producer.ok());
  for (int i = 0; i < 10; ++i) {
    KafkaProducer::Message message;
    message.topic = a;
    message.partition = 1;
    message.value = "x";
    message.time_ms = 1700000000000 + 1000 * i;
    ASSERT_TRUE((*producer)->Send(message).ok());
  }
  ASSERT_TRUE((*producer)->Flush(absl::Seconds(60)).ok());
  broker_->Produce({b, 0}, {"x", "y", "z"});
  ASSERT_TRUE(broker_->admin().DeleteRecords({{a, 1}, 2}).ok());
  const std::vector<KafkaPartition> partitions = {{b, 0}, {a, 1}, {a, 0}};
  const auto ranges = cluster_->Ranges(partitions);
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_EQ((*ranges)[0].earliest, 0);
  EXPECT_EQ((*ranges)[0].latest, 3);
  EXPECT_EQ((*ranges)[1].earliest, 2);
  EXPECT_EQ((*ranges)[1].latest, 10);
  EXPECT_EQ((*ranges)[2].latest, 0);
  // The time lies between the fourth and the fifth message of partition 1 of topic a. The messages
  // of topic b have today's time, and partition 0 of topic a has no messages.
  const auto at = cluster_->OffsetsAt(partitions, 1700000003500);
  ASSERT_TRUE(at.ok()) << at.status();
  EXPECT_EQ(*at, (std::vector<int64_t>{0, 4, 0}));
  const auto never = cluster_->OffsetsAt(partitions, int64_t{4102444800000});
  ASSERT_TRUE(never.ok()) << never.status();
  EXPECT_EQ(*never, (std::vector<int64_t>{3, 10, 0}));
}

TEST_F(KafkaClusterTest, AMessageThatArrivesWhileATimeIsAskedForIsNotBeforeItsOffset) {
  const std::string topic = broker_->NewTopic(1);
  auto producer = KafkaProducer::Create(broker_->Config(""));
  ASSERT_TRUE(producer.ok());
  for (int i = 0; i < 50; ++i) {
    KafkaProducer::Message message;
    message.topic = topic;
    message.partition = 0;
    message.value = "x";
    message.time_ms = 1700000000000 + 1000 * i;
    std::atomic<bool> written = false;
    std::thread writer([&] {
      EXPECT_TRUE((*producer)->Send(message).ok());
      EXPECT_TRUE((*producer)->Flush(absl::Seconds(60)).ok());
      written = true;
    });
    int64_t latest = 0;
    while (!written) {
      const auto at = cluster_->OffsetsAt({KafkaPartition{topic, 0}}, message.time_ms);
      EXPECT_TRUE(at.ok()) << at.status();
      if (at.ok()) latest = std::max(latest, (*at)[0]);
    }
    writer.join();
    ASSERT_LE(latest, i) << "the message would be skipped";
  }
}

TEST_F(KafkaClusterTest, ACommitWaitsNoLongerThanTheLimitForABrokerThatHangs) {
  const std::string topic = broker_->NewTopic(1);
  // The broker's very first commit makes it create a topic for its own use, so allow more time.
  ASSERT_TRUE(cluster_->Commit({KafkaPlace{{topic, 0}, 0}}).ok());
  const auto cluster = KafkaCluster::Connect(broker_->Config(""), absl::Seconds(3));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_TRUE((*cluster)->Commit({KafkaPlace{{topic, 0}, 1}}).ok());
  ASSERT_EQ(kill(broker_->pid(), SIGSTOP), 0);
  // On a busy machine some of the broker's threads keep running for a while, so wait until it has
  // stopped.
  int stopped = 0;
  ASSERT_EQ(waitpid(broker_->pid(), &stopped, WUNTRACED), broker_->pid());
  ASSERT_TRUE(WIFSTOPPED(stopped));
  const int64_t begin_ms = MonotonicMs();
  const absl::Status hangs = (*cluster)->Commit({KafkaPlace{{topic, 0}, 2}});
  EXPECT_LT(MonotonicMs() - begin_ms, 10000);
  ASSERT_EQ(kill(broker_->pid(), SIGCONT), 0);
  EXPECT_EQ(hangs.code(), absl::StatusCode::kUnavailable) << hangs;
  EXPECT_THAT(std::string(hangs.message()),
              HasSubstr("cannot commit offsets at " + broker_->address()));
  // The broker may notice that it was unreachable for too long, and then take a moment to recover.
  absl::Status back = absl::UnavailableError("");
  while (absl::IsUnavailable(back) && MonotonicMs() - begin_ms < 60000) {
    back = (*cluster)->Commit({KafkaPlace{{topic, 0}, 3}});
  }
  ASSERT_TRUE(back.ok()) << back;
  EXPECT_EQ((*(*cluster)->Committed({KafkaPartition{topic, 0}}))[0], 3);
}

TEST_F(KafkaClusterTest, AGroupsOffsetsAreCommittedAndReadBack) {
  const std::string topic = broker_->NewTopic(2);
  broker_->Produce({topic, 0}, {"a", "b", "c"});
  const std::vector<KafkaPartition> partitions = {{topic, 1}, {topic, 0}};
  auto committed = cluster_->Committed(partitions);
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ((*committed)[0], absl::nullopt);
  EXPECT_EQ((*committed)[1], absl::nullopt);
  const absl::Status status = cluster_->Commit({KafkaPlace{{topic, 0}, 2}});
  ASSERT_TRUE(status.ok()) << status;
  committed = cluster_->Committed(partitions);
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ((*committed)[0], absl::nullopt);
  EXPECT_EQ((*committed)[1], 2);
  KafkaConfig other = broker_->Config("");
  other.set_group_id("another");
  const auto stranger = KafkaCluster::Connect(other);
  EXPECT_EQ((*(*stranger)->Committed(partitions))[1], absl::nullopt);
}

TEST_F(KafkaClusterTest, ATopicIsMadeOnceAndBadSettingsAreRefused) {
  const std::string topic = broker_->NewTopic(1);
  EXPECT_EQ(broker_->admin().CreateTopic(topic, 1).code(), absl::StatusCode::kAlreadyExists);
  const absl::Status bad = broker_->admin().CreateTopic("bad", 1, {{"cleanup.policy", "x"}});
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument) << bad;
  EXPECT_THAT(std::string(bad.message()), HasSubstr("cannot create topic bad"));
}

TEST_F(KafkaClusterTest, AProducerNamesWhatItCannotDeliver) {
  const std::string topic = broker_->NewTopic(1);
  auto producer = KafkaProducer::Create(broker_->Config(""));
  ASSERT_TRUE(producer.ok());
  KafkaProducer::Message message;
  message.topic = topic;
  const std::string large(2000000, 'x');
  message.value = large;
  const absl::Status too_large = (*producer)->Send(message);
  EXPECT_EQ(too_large.code(), absl::StatusCode::kInvalidArgument) << too_large;
  EXPECT_THAT(std::string(too_large.message()),
              AllOf(HasSubstr("2000000 bytes"), HasSubstr(topic)));
  message.value = "x";
  message.topic = "not-there";
  absl::Status unknown = (*producer)->Send(message);
  if (unknown.ok()) unknown = (*producer)->Flush(absl::Seconds(60));
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("not-there"));
}

TEST_F(KafkaClusterTest, AProducerWaitsForABrokerThatComesBack) {
  const std::string topic = broker_->NewTopic(1);
  auto producer = KafkaProducer::Create(broker_->Config(""));
  ASSERT_TRUE(producer.ok());
  KafkaProducer::Message message;
  message.topic = topic;
  message.partition = 0;
  message.value = "x";
  ASSERT_TRUE((*producer)->Send(message).ok());
  ASSERT_TRUE((*producer)->Flush(absl::Seconds(60)).ok());
  broker_->Kill();
  ASSERT_TRUE((*producer)->Send(message).ok());
  const absl::Status away = (*producer)->Flush(absl::Seconds(1));
  EXPECT_EQ(away.code(), absl::StatusCode::kUnavailable) << away;
  EXPECT_THAT(std::string(away.message()), HasSubstr("1 messages are not acknowledged"));
  broker_->Restart();
  const absl::Status back = (*producer)->Flush(absl::Seconds(60));
  ASSERT_TRUE(back.ok()) << back;
  EXPECT_EQ((*(*KafkaCluster::Connect(broker_->Config("")))->Ranges({KafkaPartition{topic, 0}}))[0]
                .latest,
            2);
}

TEST(KafkaAddressTest, WhereNoBrokerIsTheErrorNamesTheAddressInTime) {
  KafkaConfig config;
  config.add_brokers(absl::StrCat("127.0.0.1:", FreePorts(1)[0]));
  const int64_t begin_ms = MonotonicMs();
  const auto cluster = KafkaCluster::Connect(config, absl::Seconds(2));
  EXPECT_LT(MonotonicMs() - begin_ms, 6000);
  EXPECT_EQ(cluster.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(cluster.status().message()),
              AllOf(HasSubstr(config.brokers(0)), HasSubstr("within 2s"),
                    HasSubstr("Connection refused"), HasSubstr("`brokers`")));
}

TEST(KafkaAddressTest, ANameThatDoesNotResolveIsInTheError) {
  KafkaConfig config;
  config.add_brokers("no-such-host.invalid:9092");
  const auto cluster = KafkaCluster::Connect(config, absl::Seconds(2));
  EXPECT_EQ(cluster.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(cluster.status().message()), HasSubstr("no-such-host.invalid:9092"));
}

}  // namespace
}  // namespace satrap
