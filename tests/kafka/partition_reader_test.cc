// PartitionReader against a real broker.

#include "common/kafka/partition_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/kafka/broker_outage.h"
#include "common/kafka/cluster.h"
#include "common/kafka/producer.h"
#include "common/log/log.h"
#include "common/thread/clock.h"
#include "tests/kafka/kafka_broker.h"
#include "tests/kafka/transactions.h"

namespace satrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);

std::vector<std::string> Numbered(int count, const std::string& prefix = "v") {
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) values.push_back(absl::StrCat(prefix, i));
  return values;
}

class PartitionReaderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    broker_ = KafkaBroker::Start({"log.cleaner.backoff.ms=100"}).release();
  }
  static void TearDownTestSuite() { delete broker_; }
  void SetUp() override {
    if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
  }

  std::unique_ptr<PartitionReader> Open(std::vector<KafkaPlace> places) {
    return Open(broker_->Config(""), std::move(places));
  }
  static std::unique_ptr<PartitionReader> Open(const KafkaConfig& config,
                                               std::vector<KafkaPlace> places) {
    auto reader = PartitionReader::Open(config, std::move(places), Logger());
    CHECK(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  // Reads partition `index` to its end. Each message is (offset, value).
  static std::vector<std::pair<int64_t, std::string>> ReadToEnd(PartitionReader* reader,
                                                                size_t index) {
    std::vector<std::pair<int64_t, std::string>> read;
    const int64_t deadline_ms = MonotonicMs() + absl::ToInt64Milliseconds(kPatience);
    do {
      reader->Wait({index}, absl::Seconds(1));
      MessageBatch batch;
      const absl::Status status = reader->Read(index, 1000, &batch);
      CHECK(status.ok()) << status;
      for (size_t i = 0; i < batch.size(); ++i) {
        read.emplace_back(batch.offset(i), std::string(batch.value(i)));
      }
      CHECK(MonotonicMs() < deadline_ms) << "no end after " << read.size() << " messages";
    } while (!reader->at_end(index));
    return read;
  }
  // Reads until an error comes.
  static absl::Status ReadToError(PartitionReader* reader, size_t index) {
    const int64_t deadline_ms = MonotonicMs() + absl::ToInt64Milliseconds(kPatience);
    absl::Status status;
    while (status.ok() && MonotonicMs() < deadline_ms) {
      reader->Wait({index}, absl::Seconds(1));
      MessageBatch batch;
      status = reader->Read(index, 1000, &batch);
    }
    return status;
  }

  static KafkaBroker* broker_;
};

KafkaBroker* PartitionReaderTest::broker_ = nullptr;

TEST_F(PartitionReaderTest, GivesEveryMessageOnceInOrderFromTheWantedOffset) {
  const std::string topic = broker_->NewTopic(2);
  broker_->Produce({topic, 0}, Numbered(3000));
  broker_->Produce({topic, 1}, Numbered(5, "w"));
  auto reader = Open({{{topic, 0}, 1000}, {{topic, 1}, 0}});
  const auto zero = ReadToEnd(reader.get(), 0);
  ASSERT_EQ(zero.size(), 2000u);
  for (size_t i = 0; i < zero.size(); ++i) {
    ASSERT_EQ(zero[i].first, static_cast<int64_t>(1000 + i));
    ASSERT_EQ(zero[i].second, absl::StrCat("v", 1000 + i));
  }
  EXPECT_EQ(reader->next_offset(0), 3000);
  EXPECT_EQ(ReadToEnd(reader.get(), 1).size(), 5u);
}

TEST_F(PartitionReaderTest, GoesOnWithWhatIsWrittenAfterTheEnd) {
  const std::string topic = broker_->NewTopic(1);
  auto reader = Open({{{topic, 0}, 0}});
  EXPECT_EQ(ReadToEnd(reader.get(), 0).size(), 0u);
  for (int round = 0; round < 3; ++round) {
    broker_->Produce({topic, 0}, Numbered(10));
    size_t read = 0;
    while (read < 10) read += ReadToEnd(reader.get(), 0).size();
    EXPECT_EQ(reader->next_offset(0), 10 * (round + 1));
  }
}

TEST_F(PartitionReaderTest, KeyHeadersTimeAndTombstonesAreThere) {
  const std::string topic = broker_->NewTopic(1);
  auto producer = KafkaProducer::Create(broker_->Config(topic));
  ASSERT_TRUE(producer.ok());
  KafkaProducer::Message message;
  message.topic = topic;
  message.partition = 0;
  message.value = "value";
  message.key = "key";
  message.time_ms = 1700000000123;
  message.headers = {{"h", "first"}, {"h", "last"}};
  ASSERT_TRUE((*producer)->Send(message).ok());
  KafkaProducer::Message tombstone;
  tombstone.topic = topic;
  tombstone.partition = 0;
  tombstone.tombstone = true;
  tombstone.key = "";
  ASSERT_TRUE((*producer)->Send(tombstone).ok());
  KafkaProducer::Message empty;
  empty.topic = topic;
  empty.partition = 0;
  ASSERT_TRUE((*producer)->Send(empty).ok());
  ASSERT_TRUE((*producer)->Flush(kPatience).ok());
  EXPECT_EQ((*producer)->delivered(), 3u);

  auto reader = Open({{{topic, 0}, 0}});
  MessageBatch batch;
  int64_t seen = 0;
  while (seen < 3) {
    ASSERT_TRUE(reader->Wait({0}, kPatience));
    ASSERT_TRUE(reader->Read(0, 1, &batch).ok());
    if (batch.empty()) continue;
    const int64_t offset = batch.offset(0);
    ASSERT_EQ(offset, seen++);
    EXPECT_EQ(batch.is_tombstone(0), offset == 1);
    if (offset == 0) {
      EXPECT_EQ(batch.value(0), "value");
      EXPECT_EQ(batch.key(0), absl::string_view("key"));
      EXPECT_EQ(batch.header(0, "h"), absl::string_view("last"));
      EXPECT_EQ(batch.header(0, "other"), absl::nullopt);
      EXPECT_EQ(batch.time_ms(0), 1700000000123);
    } else if (offset == 1) {
      EXPECT_EQ(batch.key(0), absl::string_view(""));
    } else {
      EXPECT_EQ(batch.value(0), "");
      EXPECT_EQ(batch.key(0), absl::nullopt);
    }
  }
}

TEST_F(PartitionReaderTest, AbortedTransactionsAndMarksAreGapsThatTheEndIncludes) {
  const std::string topic = broker_->NewTopic(1);
  TransactionalProducer producer(broker_->address(), "gaps");
  const KafkaPartition partition{topic, 0};
  producer.Begin();
  for (int i = 0; i < 3; ++i) producer.Send(partition, absl::StrCat("a", i));  // 0 to 2
  producer.Commit();                                                           // mark at 3
  producer.Begin();
  for (int i = 0; i < 4; ++i) producer.Send(partition, "never");  // 4 to 7
  producer.Abort();                                               // mark at 8
  producer.Begin();
  producer.Send(partition, "b");  // 9
  producer.Commit();              // mark at 10
  producer.Begin();
  for (int i = 0; i < 4; ++i) producer.Send(partition, "never");  // 11 to 14
  producer.Abort();                                               // mark at 15

  auto reader = Open({{partition, 0}});
  auto read = ReadToEnd(reader.get(), 0);
  while (reader->next_offset(0) < 16) {
    const auto more = ReadToEnd(reader.get(), 0);
    read.insert(read.end(), more.begin(), more.end());
  }
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(read[2], std::make_pair(int64_t{2}, std::string("a2")));
  EXPECT_EQ(read[3], std::make_pair(int64_t{9}, std::string("b")));
  EXPECT_EQ(reader->next_offset(0), 16);
}

TEST_F(PartitionReaderTest, AnOpenTransactionEndsWhatCanBeRead) {
  const std::string topic = broker_->NewTopic(1);
  const KafkaPartition partition{topic, 0};
  broker_->Produce(partition, Numbered(5));
  TransactionalProducer producer(broker_->address(), "open");
  producer.Begin();
  producer.Send(partition, "open");  // 5
  producer.Flush();
  broker_->Produce(partition, {"after"});  // 6

  auto cluster = KafkaCluster::Connect(broker_->Config(topic));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const auto ranges = (*cluster)->Ranges({partition});
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_EQ((*ranges)[0].latest, 5);
  auto reader = Open({{partition, 0}});
  EXPECT_EQ(ReadToEnd(reader.get(), 0).size(), 5u);
  EXPECT_EQ(reader->next_offset(0), 5);
  producer.Commit();
  size_t after = 0;
  while (after < 2) after += ReadToEnd(reader.get(), 0).size();
  EXPECT_EQ(reader->next_offset(0), 8);
}

TEST_F(PartitionReaderTest, ACompactedTopicHasGaps) {
  const std::string topic = broker_->NewTopic(1, {{"cleanup.policy", "compact"},
                                                  {"segment.ms", "100"},
                                                  {"segment.bytes", "2000"},
                                                  {"min.cleanable.dirty.ratio", "0.01"},
                                                  {"min.compaction.lag.ms", "0"}});
  const KafkaPartition partition{topic, 0};
  auto producer = KafkaProducer::Create(broker_->Config(topic));
  ASSERT_TRUE(producer.ok());
  int64_t sent = 0;
  std::vector<std::pair<int64_t, std::string>> read;
  // The broker compacts when it has time, so the loop repeats until it has done so. The messages of
  // each round also close a segment.
  for (int round = 0; round < 600 && (sent < 1000 || read.size() > 500); ++round) {
    for (int i = 0; i < 100; ++i) {
      const std::string key = absl::StrCat("key", i % 10);
      const std::string value = absl::StrCat("value", sent++);
      KafkaProducer::Message message;
      message.topic = topic;
      message.partition = 0;
      message.key = key;
      message.value = value;
      ASSERT_TRUE((*producer)->Send(message).ok());
    }
    ASSERT_TRUE((*producer)->Flush(kPatience).ok());
    auto reader = Open({{partition, 0}});
    read.clear();
    while (reader->next_offset(0) < sent) {
      const auto more = ReadToEnd(reader.get(), 0);
      read.insert(read.end(), more.begin(), more.end());
    }
    ASSERT_EQ(reader->next_offset(0), sent);
  }
  ASSERT_LT(read.size(), static_cast<size_t>(sent)) << "nothing was compacted";
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].second, absl::StrCat("value", read[i].first));
    if (i > 0) {
      EXPECT_GT(read[i].first, read[i - 1].first);
    }
  }
}

TEST_F(PartitionReaderTest, ExpiredOffsetsAreAnErrorThatNamesWhatWasWantedAndFound) {
  const std::string topic = broker_->NewTopic(2);
  const KafkaPartition partition{topic, 0};
  broker_->Produce(partition, Numbered(100));
  broker_->Produce({topic, 1}, Numbered(100));
  ASSERT_TRUE(broker_->admin().DeleteRecords({partition, 50}).ok());
  auto reader = Open({{partition, 10}, {{topic, 1}, 0}});
  const absl::Status status = ReadToError(reader.get(), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("offset 10 of " + topic + "/0"), HasSubstr("still has is 50")));
  ASSERT_TRUE(reader->lost(0).has_value());
  EXPECT_EQ(reader->lost(0)->wanted, 10);
  EXPECT_EQ(reader->lost(0)->found, 50);
  // The error stays, but messages of the other partition are still delivered.
  MessageBatch batch;
  EXPECT_EQ(reader->Read(0, 10, &batch), status);
  EXPECT_EQ(ReadToEnd(reader.get(), 1).size(), 100u);
  // A new reader that begins at the offset that was found can read on.
  EXPECT_EQ(ReadToEnd(Open({{partition, 50}}).get(), 0).size(), 50u);
}

TEST_F(PartitionReaderTest, AnOffsetAfterTheEndIsAnError) {
  const std::string topic = broker_->NewTopic(1);
  broker_->Produce({topic, 0}, Numbered(7));
  auto reader = Open({{{topic, 0}, 1000}});
  const absl::Status status = ReadToError(reader.get(), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("offset 1000 of " + topic + "/0"), HasSubstr("ends at 7")));
  EXPECT_EQ(reader->lost(0)->found, 7);
}

TEST_F(PartitionReaderTest, APartitionThatIsNotReadFillsItsShareAndHoldsUpNoOther) {
  const std::string topic = broker_->NewTopic(2);
  const std::vector<std::string> values(2000, std::string(10000, 'x'));  // 20 MB
  broker_->Produce({topic, 0}, values);
  broker_->Produce({topic, 1}, values);
  KafkaConfig config = broker_->Config("");
  config.set_queue_bytes(4 << 20);
  auto reader = Open(config, {{{topic, 0}, 0}, {{topic, 1}, 0}});
  EXPECT_EQ(ReadToEnd(reader.get(), 1).size(), values.size());
  // The queue's share is 2 MB. One fetch answer of at most 1 MB may come on top of it.
  EXPECT_GT(reader->queued_messages(0), 0u);
  EXPECT_LE(reader->queued_messages(0), (size_t{3} << 20) / 10000 + 1);
  EXPECT_EQ(ReadToEnd(reader.get(), 0).size(), values.size());
}

TEST_F(PartitionReaderTest, AQueueThatWasFullIsFilledAgainWhenItRunsLow) {
  const std::string topic = broker_->NewTopic(1);
  const int total = 2000;
  const std::vector<std::string> values(total, std::string(10000, 'x'));
  broker_->Produce({topic, 0}, values);
  KafkaConfig config = broker_->Config("");
  config.set_queue_bytes(1 << 20);  // about a hundred messages
  auto reader = Open(config, {{{topic, 0}, 0}});
  int refills = 0;
  int late = 0;
  while (reader->next_offset(0) < total - 300) {
    const int64_t begin_ms = MonotonicMs();
    while (reader->queued_messages(0) < 90) {
      ASSERT_LT(MonotonicMs() - begin_ms, absl::ToInt64Milliseconds(kPatience));
      reader->Wait({}, absl::Milliseconds(5));
    }
    ++refills;
    // With its defaults, librdkafka would take a second to fill the queue.
    late += MonotonicMs() - begin_ms > 500 ? 1 : 0;
    while (reader->queued_messages(0) > 30) {
      MessageBatch batch;
      ASSERT_TRUE(reader->Read(0, 10, &batch).ok());
    }
  }
  EXPECT_GT(refills, 8);
  EXPECT_LT(late, refills / 2);
}

TEST_F(PartitionReaderTest, ADeletedTopicIsAnError) {
  const std::string topic = broker_->NewTopic(1);
  auto reader = Open({{{topic, 0}, 0}});
  EXPECT_EQ(ReadToEnd(reader.get(), 0).size(), 0u);
  ASSERT_TRUE(broker_->admin().DeleteTopic(topic).ok());
  const absl::Status status = ReadToError(reader.get(), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(topic + "/0"));
}

TEST_F(PartitionReaderTest, TheEndIsToldWithoutReading) {
  const std::string topic = broker_->NewTopic(1);
  broker_->Produce({topic, 0}, Numbered(12));
  auto reader = Open({{{topic, 0}, 0}});
  const int64_t deadline_ms = MonotonicMs() + absl::ToInt64Milliseconds(kPatience);
  while (reader->end_offset(0) < 12 && MonotonicMs() < deadline_ms) {
    reader->Wait({}, absl::Milliseconds(50));
  }
  EXPECT_EQ(reader->end_offset(0), 12);
}

TEST_F(PartitionReaderTest, ABrokerThatWasKilledIsWaitedForAndNothingIsLostOrRepeated) {
  const std::string topic = broker_->NewTopic(1);
  broker_->Produce({topic, 0}, Numbered(1000));
  auto reader = Open({{{topic, 0}, 0}});
  EXPECT_EQ(ReadToEnd(reader.get(), 0).size(), 1000u);
  broker_->Kill();
  const int64_t killed_ms = MonotonicMs();
  broker_->Restart();
  const int64_t answered_ms = MonotonicMs();
  broker_->Produce({topic, 0}, Numbered(1000));
  size_t read = 0;
  while (read < 1000) read += ReadToEnd(reader.get(), 0).size();
  EXPECT_EQ(read, 1000u);
  EXPECT_EQ(reader->next_offset(0), 2000);
  RecordProperty("broker_back_ms", static_cast<int>(answered_ms - killed_ms));
  std::printf("the broker answered %.1f s after it was killed, the reader had all %.1f s later\n",
              static_cast<double>(answered_ms - killed_ms) / 1000,
              static_cast<double>(MonotonicMs() - answered_ms) / 1000);
}

TEST_F(PartitionReaderTest, ABrokerThatStaysAwayIsAnErrorAfterTheLimit) {
  const std::string topic = broker_->NewTopic(1);
  KafkaConfig config = broker_->Config("");
  config.set_broker_wait_seconds(3);
  const std::string log = testing::TempDir() + "/reader.log";
  const auto logger = Logger::Create("data_loader/0", LogLevel::kInfo, log);
  ASSERT_TRUE(logger.ok()) << logger.status();
  const auto outage = std::make_shared<BrokerOutage>();
  std::vector<std::unique_ptr<PartitionReader>> readers;
  for (int i = 0; i < 2; ++i) {
    auto opened = PartitionReader::Open(config, {{{topic, 0}, 0}}, *logger, outage);
    ASSERT_TRUE(opened.ok()) << opened.status();
    readers.push_back(*std::move(opened));
    EXPECT_EQ(ReadToEnd(readers.back().get(), 0).size(), 0u);
  }
  PartitionReader* const reader = readers[0].get();
  broker_->Kill();
  const int64_t killed_ms = MonotonicMs();
  const absl::Status status = ReadToError(reader, 0);
  const int64_t after_ms = MonotonicMs() - killed_ms;
  EXPECT_EQ(ReadToError(readers[1].get(), 0).code(), absl::StatusCode::kUnavailable);
  broker_->Restart();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(broker_->address()), HasSubstr("broker_wait_seconds")));
  EXPECT_GE(after_ms, 2000);
  EXPECT_LT(after_ms, 15000);
  std::ifstream file(log);
  int warnings = 0;
  for (std::string line; std::getline(file, line);) {
    warnings += absl::StrContains(line, "no Kafka broker answers") ? 1 : 0;
  }
  EXPECT_EQ(warnings, 1) << "one for both readers";
}

TEST_F(PartitionReaderTest, StopEndsAWait) {
  const std::string topic = broker_->NewTopic(1);
  auto reader = Open({{{topic, 0}, 0}});
  EXPECT_EQ(ReadToEnd(reader.get(), 0).size(), 0u);
  reader->Stop();
  EXPECT_FALSE(reader->Wait({0}, absl::Hours(1)));
}

}  // namespace
}  // namespace satrap
