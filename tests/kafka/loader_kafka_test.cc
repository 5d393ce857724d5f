// Tests a loader that reads topics of a real broker: gaps, transactions, several lines per message,
// dead letters, expired offsets, and a partition that is added while it reads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/kafka/cluster.h"
#include "common/kafka/partition_reader.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"
#include "common/thread/thread_pool_executor.h"
#include "data_loader/loader_streams.h"
#include "data_loader/testing/topic_loader_testing.h"
#include "tests/kafka/kafka_broker.h"
#include "tests/kafka/transactions.h"

namespace satrap {
namespace {

using testing::HasSubstr;

constexpr int64_t kPatienceMs = 60000;

// A loader with its threads.
class Loader {
 public:
  Loader(const JobConfig& job, const SplitList& partitions, const Ledger& ledger = Ledger())
      : executor_(2) {
    LoaderStreams::Begin begin;
    begin.ledger = ledger.ToState();
    begin.fix_files = [&partitions](SplitList listed) {
      *listed.mutable_topics() = partitions.topics();
      return listed;
    };
    auto streams = LoaderStreams::Make(job, 0, nullptr, begin);
    CHECK(streams.ok()) << streams.status();
    streams_ = *std::move(streams);
    streams_->MakeSources(&executor_, nullptr);
  }
  ~Loader() { executor_.Stop(); }

  // The next part of the train stream; nothing at the end of the epoch.
  absl::StatusOr<absl::optional<Part>> Next() {
    streams_->sources()[0].sources[0]->Next([this](absl::StatusOr<absl::optional<Part>> part) {
      MutexLock lock(&mutex_);
      answer_ = std::move(part);
      answered_.NotifyAll();
    });
    const int64_t end_ms = MonotonicMs() + kPatienceMs;
    MutexLock lock(&mutex_);
    while (!answer_.has_value() && MonotonicMs() < end_ms) answered_.WaitFor(&mutex_, 1000);
    CHECK(answer_.has_value()) << "no part has come";
    absl::StatusOr<absl::optional<Part>> answer = *std::move(answer_);
    answer_.reset();
    return answer;
  }
  LoaderStreams& streams() { return *streams_; }

 private:
  ThreadPoolExecutor executor_;
  Mutex mutex_;
  CondVar answered_;
  absl::optional<absl::StatusOr<absl::optional<Part>>> answer_ GUARDED_BY(mutex_);
  std::unique_ptr<LoaderStreams> streams_;
};

class LoaderKafkaTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { broker_ = KafkaBroker::Start().release(); }
  static void TearDownTestSuite() { delete broker_; }
  void SetUp() override {
    if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
  }

  JobConfig Job(const std::string& topic) const {
    JobConfig job;
    job.set_global_batch_size(64);
    job.mutable_nn_worker()->set_replicas(2);
    job.mutable_data_loader()->set_threads(2);
    DataConfig* const data = job.mutable_data();
    for (const auto& [name, kind] :
         {std::pair("y", ColumnConfig::LABEL), std::pair("x", ColumnConfig::NUMERIC)}) {
      ColumnConfig* const column = data->mutable_csv()->add_columns();
      column->set_name(name);
      column->set_kind(kind);
    }
    data->add_numerics()->set_name("x");
    data->set_shuffle_rows(100);
    data->set_max_bad_fraction(1);
    *data->mutable_kafka() = broker_->Config(topic);
    data->mutable_kafka()->set_format(KafkaConfig::LINES);
    data->mutable_kafka()->set_max_wait_ms(500);
    return job;
  }
  // All partitions from their first offset on. If `with_ends`, they end at their present end;
  // otherwise they have no end.
  static SplitList Partitions(const std::string& topic, bool with_ends) {
    const KafkaConfig config = broker_->Config(topic);
    auto cluster = KafkaCluster::Connect(config);
    CHECK(cluster.ok()) << cluster.status();
    const auto names = (*cluster)->Partitions(config);
    CHECK(names.ok()) << names.status();
    const auto ranges = (*cluster)->Ranges(*names);
    CHECK(ranges.ok()) << ranges.status();
    SplitList list;
    list.add_topics()->set_stream(TRAIN_STREAM);
    for (size_t i = 0; i < names->size(); ++i) {
      TopicPartition* const partition = list.mutable_topics(0)->add_partitions();
      partition->set_topic((*names)[i].topic);
      partition->set_partition((*names)[i].partition);
      partition->set_start(static_cast<uint64_t>((*ranges)[i].earliest));
      if (with_ends) partition->set_end(static_cast<uint64_t>((*ranges)[i].latest));
    }
    return list;
  }
  static void Take(const Part& part, std::multiset<float>* numbers, Ledger* ledger) {
    for (const float x : NumbersOf(part)) numbers->insert(x);
    Consume(part, ledger);
  }
  // Lines with the numbers [from, to), three per message.
  static std::vector<std::string> Messages(int from, int to) {
    std::vector<std::string> messages;
    for (int i = from; i < to; ++i) {
      if ((i - from) % 3 == 0) messages.emplace_back();
      absl::StrAppend(&messages.back(), i % 2, ",", i, "\n");
    }
    return messages;
  }

  static KafkaBroker* broker_;
};

KafkaBroker* LoaderKafkaTest::broker_ = nullptr;

TEST_F(LoaderKafkaTest, ABoundedTopicWithTransactionsIsReadOnceByTwoLives) {
  const std::string topic = broker_->NewTopic(2);
  TransactionalProducer producer(broker_->address(), "loader");
  int written = 0;
  for (int round = 0; round < 20; ++round) {
    producer.Begin();
    for (const std::string& value : Messages(written, written + 90)) {
      producer.Send({topic, round % 2}, value);
    }
    producer.Commit();
    written += 90;
    producer.Begin();
    for (int i = 0; i < 7; ++i) producer.Send({topic, round % 2}, "1,-1");
    producer.Abort();
  }
  // When the run begins, a reader can read only up to the first message of an open transaction.
  producer.Begin();
  producer.Send({topic, 0}, "1,-2");
  producer.Flush();
  const SplitList partitions = Partitions(topic, true);
  producer.Commit();

  std::multiset<float> numbers;
  Ledger ledger;
  {
    Loader first(Job(topic), partitions);
    std::multiset<float> lost;
    Ledger unused;
    for (int i = 0; i < 16; ++i) {
      const auto part = first.Next();
      ASSERT_TRUE(part.ok() && part->has_value()) << part.status();
      if (i % 3 == 0) {
        Take(**part, &lost, &unused);
      } else {
        Take(**part, &numbers, &ledger);
      }
    }
  }
  Loader second(Job(topic), partitions, ledger);
  for (;;) {
    const auto part = second.Next();
    ASSERT_TRUE(part.ok()) << part.status();
    if (!part->has_value()) break;
    Take(**part, &numbers, &ledger);
  }
  EXPECT_EQ(numbers.size(), static_cast<size_t>(written));
  for (int i = 0; i < written; ++i) ASSERT_EQ(numbers.count(static_cast<float>(i)), 1u) << i;
  EXPECT_TRUE(ledger.IsSplitDone(0, 0));
  EXPECT_TRUE(ledger.IsSplitDone(0, 1));
}

TEST_F(LoaderKafkaTest, WhatIsWrittenWhileItReadsIsTrainedToTheLastOffset) {
  const std::string topic = broker_->NewTopic(1);
  const SplitList partitions = Partitions(topic, false);
  Loader loader(Job(topic), partitions);
  std::multiset<float> numbers;
  Ledger ledger;
  for (int round = 0; round < 3; ++round) {
    broker_->Produce({topic, 0}, Messages(100 * round, 100 * (round + 1)));
    while (numbers.size() < 100u * (round + 1)) {
      const auto part = loader.Next();
      ASSERT_TRUE(part.ok() && part->has_value()) << part.status();
      Take(**part, &numbers, &ledger);
    }
  }
  EXPECT_EQ(ledger.ContiguousEnd(0, 0, 0), 3u * 34);
  EXPECT_EQ(loader.streams().Progress().partitions(0).next_offset(), 3u * 34);

  ASSERT_TRUE(broker_->admin().AddPartitions(topic, 2).ok());
  DealtPartition dealt;
  dealt.set_split(1);
  dealt.set_loader(0);
  dealt.mutable_partition()->set_topic(topic);
  dealt.mutable_partition()->set_partition(1);
  dealt.mutable_partition()->set_start(0);
  loader.streams().Deal(dealt);
  broker_->Produce({topic, 1}, Messages(1000, 1010));
  while (numbers.size() < 310u) {
    const auto part = loader.Next();
    ASSERT_TRUE(part.ok() && part->has_value()) << part.status();
    Take(**part, &numbers, &ledger);
  }
  EXPECT_EQ(numbers.count(1009), 1u);
}

TEST_F(LoaderKafkaTest, BadRecordsAreInTheDeadLetterTopicWhenTheirPartComes) {
  const std::string topic = broker_->NewTopic(1);
  const std::string dead = broker_->NewTopic(1);
  broker_->Produce({topic, 0}, {"1,5\nbad\n", "", "1,6"});
  JobConfig job = Job(topic);
  job.mutable_data()->mutable_kafka()->set_dead_letter_topic(dead);
  const SplitList partitions = Partitions(topic, true);
  Loader loader(job, partitions);
  const auto part = loader.Next();
  ASSERT_TRUE(part.ok() && part->has_value()) << part.status();
  auto reader = PartitionReader::Open(broker_->Config(dead), {{{dead, 0}, 0}}, Logger());
  ASSERT_TRUE(reader.ok()) << reader.status();
  MessageBatch batch;
  while (batch.empty()) {
    ASSERT_TRUE((*reader)->Wait({0}, absl::Milliseconds(kPatienceMs)));
    ASSERT_TRUE((*reader)->Read(0, 10, &batch).ok());
  }
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(batch.key(0), absl::string_view(absl::StrCat(topic, "/0/0/2")));
  EXPECT_EQ(batch.value(0), "bad");
  EXPECT_TRUE(absl::StrContains(batch.header(0, "reason").value_or(""),
                                "holds 'bad', but a label is expected"));
  EXPECT_EQ(loader.streams().Progress().dead_letters(), 1u);
  batch.Clear();
}

TEST_F(LoaderKafkaTest, BadRecordsThatAreTooLargeForTheDeadLetterTopicAreShortened) {
  const std::string topic = broker_->NewTopic(1, {{"max.message.bytes", "4000000"}});
  const std::string dead = broker_->NewTopic(1, {{"max.message.bytes", "20000"}});
  // The first value is too large for the client to send, and the second one too large for the topic
  // to accept. None of the many small values is too large for either.
  std::vector<std::string> values = {std::string(900000, 'x'), std::string(50000, 'y')};
  for (int i = 0; i < 300; ++i) values.push_back(std::string(400, 'z'));
  values.push_back("1,6");
  broker_->Produce({topic, 0}, values);
  JobConfig job = Job(topic);
  KafkaConfig* const kafka = job.mutable_data()->mutable_kafka();
  kafka->set_dead_letter_topic(dead);
  KafkaSetting* const setting = kafka->add_settings();
  setting->set_name("message.max.bytes");
  setting->set_value("500000");
  const SplitList partitions = Partitions(topic, true);
  Loader loader(job, partitions);
  const auto part = loader.Next();
  ASSERT_TRUE(part.ok() && part->has_value()) << part.status();
  auto reader = PartitionReader::Open(broker_->Config(dead), {{{dead, 0}, 0}}, Logger());
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::map<std::string, std::pair<std::string, std::string>> letters;  // value, full_bytes
  while (letters.size() < 302) {
    MessageBatch batch;
    ASSERT_TRUE((*reader)->Wait({0}, absl::Milliseconds(kPatienceMs)));
    ASSERT_TRUE((*reader)->Read(0, 1000, &batch).ok());
    for (size_t i = 0; i < batch.size(); ++i) {
      EXPECT_TRUE(batch.header(i, "reason").has_value());
      letters[std::string(*batch.key(i))] = {
          std::string(batch.value(i)), std::string(batch.header(i, "full_bytes").value_or(""))};
    }
  }
  const auto& [first, first_bytes] = letters[absl::StrCat(topic, "/0/0/1")];
  EXPECT_EQ(first, std::string(900000 / 64, 'x'));
  EXPECT_EQ(first_bytes, "900000");
  const auto& [second, second_bytes] = letters[absl::StrCat(topic, "/0/1/1")];
  EXPECT_EQ(second, std::string(50000 / 4, 'y'));
  EXPECT_EQ(second_bytes, "50000");
  const auto& [small, small_bytes] = letters[absl::StrCat(topic, "/0/2/1")];
  EXPECT_EQ(small, std::string(400, 'z'));
  EXPECT_EQ(small_bytes, "");
}

TEST_F(LoaderKafkaTest, ExpiredOffsetsAreAnErrorOrAreSkippedAndCounted) {
  const std::string topic = broker_->NewTopic(1);
  broker_->Produce({topic, 0}, Messages(0, 300));
  const SplitList partitions = Partitions(topic, true);
  ASSERT_TRUE(broker_->admin().DeleteRecords({{topic, 0}, 40}).ok());
  JobConfig job = Job(topic);
  {
    Loader loader(job, partitions);
    const absl::Status status = loader.Next().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("offset 0 of ", topic, "/0")));
  }
  job.mutable_data()->mutable_kafka()->set_on_lost_offsets(KafkaConfig::SKIP);
  Loader loader(job, partitions);
  std::multiset<float> numbers;
  Ledger ledger;
  for (;;) {
    const auto part = loader.Next();
    ASSERT_TRUE(part.ok()) << part.status();
    if (!part->has_value()) break;
    Take(**part, &numbers, &ledger);
  }
  EXPECT_EQ(numbers.size(), 180u);
  EXPECT_EQ(loader.streams().Progress().lost_messages(), 40u);
  EXPECT_TRUE(ledger.IsSplitDone(0, 0));
}

}  // namespace
}  // namespace satrap
