// Tests whole runs that train from the topics of a real broker, with real processes.

#include <signal.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/kafka/producer.h"
#include "gmock/gmock.h"
#include "tests/kafka/topic_run_fixture.h"
#include "tests/kafka/transactions.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using TopicRunTest = TopicRunFixture;

constexpr double kSecondsToEnd = 180;

TEST_F(TopicRunTest, ABoundedTopicIsTrainedOnceThroughTheDeathsOfALoaderAndOfTheBroker) {
  constexpr int64_t kRecords = 200000;
  const std::string topic = broker_->NewTopic(4);
  Produce(topic, 4, 0, kRecords);
  const Command run = StartRun(WriteTopicJob(topic, "end { at: AT_START }"));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  // The broker is killed first, so that the run cannot end before its loader is killed.
  broker_->Kill();
  Signal("data_loader", 1, SIGKILL);
  broker_->Restart();
  // These records come after the end that was fixed when the run began, so they are not part of the
  // run.
  Produce(topic, 4, kRecords, kRecords + 1000);
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(Generations(), 2);
}

TEST_F(TopicRunTest, TwoEpochsOfABoundedTopicTrainEachMessageTwice) {
  constexpr int64_t kRecords = 20000;
  const std::string topic = broker_->NewTopic(3);
  Produce(topic, 3, 0, kRecords);
  const Command run =
      StartRun(WriteTopicJob(topic, "end { at: AT_START }", "epochs: 2\nmode: SYNC\n"));
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords, 2);
}

TEST_F(TopicRunTest, ARunWithoutEndTrainsWhatComesAndPartitionsThatAreAddedUntilItIsStopped) {
  const std::string topic = broker_->NewTopic(2);
  Produce(topic, 2, 0, 10000);
  const Command run = StartRun(WriteTopicJob(topic, "end { at: NEVER } max_wait_ms: 200"));
  ASSERT_TRUE(WaitUntilConsumed(topic)) << ReadFile(run.err_path);
  ASSERT_TRUE(broker_->admin().AddPartitions(topic, 3).ok());
  Produce(topic, 3, 10000, 20000);
  ASSERT_TRUE(WaitUntilConsumed(topic)) << ReadFile(run.err_path);
  const CommandEnd stop = Satrap({"stop", RunDir()});
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  const CommandEnd end = WaitFor(run, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  ExpectEachRecordTrained(20000);
  EXPECT_TRUE(NobodyIsLeft());

  // After the restart the run continues after the records that were trained, with all three
  // partitions.
  Produce(topic, 3, 20000, 30000);
  const Command resumed = StartSatrap({"resume", RunDir()});
  ASSERT_TRUE(WaitUntilConsumed(topic)) << ReadFile(resumed.err_path);
  EXPECT_EQ(Satrap({"stop", RunDir()}).exit_code, 0);
  EXPECT_EQ(WaitFor(resumed, kSecondsToEnd).exit_code, 0);
  ExpectEachRecordTrained(30000);
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(TopicRunTest, EachBadMessageHasOneKeyAmongTheDeadLettersEvenAfterADeath) {
  constexpr int64_t kRecords = 100000;
  const std::string topic = broker_->NewTopic(4);
  const std::string dead = broker_->NewTopic(1);
  // Every hundredth message is bad; the good messages are numbered without gaps.
  int64_t record = 0;
  int64_t bad = 0;
  for (int partition = 0; partition < 4; ++partition) {
    std::vector<std::string> lines;
    for (int i = 0; i < kRecords / 4; ++i) {
      if (i % 100 == 99) {
        lines.push_back("no record");
        ++bad;
      } else {
        lines.push_back(LineOf(record++));
      }
    }
    broker_->Produce({topic, partition}, lines);
  }
  const Command run = StartRun(
      WriteTopicJob(topic, absl::StrCat("end { at: AT_START } dead_letter_topic: \"", dead, "\"")));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  Signal("data_loader", 0, SIGKILL);
  ExpectFinished(WaitFor(run, kSecondsToEnd), record);
  std::set<std::string> keys;
  for (const auto& [key, reason] : KeysAndReasons(dead)) {
    EXPECT_TRUE(absl::StartsWith(key, absl::StrCat(topic, "/"))) << key;
    EXPECT_NE(reason, "");
    keys.insert(key);
  }
  EXPECT_EQ(static_cast<int64_t>(keys.size()), bad);
}

TEST_F(TopicRunTest, AbortedAndOpenTransactionsAreNotTrained) {
  const std::string topic = broker_->NewTopic(1);
  const KafkaPartition partition{topic, 0};
  TransactionalProducer producer(broker_->address(), topic);
  int64_t record = 0;
  for (int transaction = 0; transaction < 40; ++transaction) {
    producer.Begin();
    const bool commits = transaction % 3 != 1;
    for (int i = 0; i < 100; ++i) {
      producer.Send(partition, LineOf(commits ? record++ : 1000000 + transaction));
    }
    if (commits) {
      producer.Commit();
    } else {
      producer.Abort();
    }
  }
  // This transaction is still open when the run begins, so its messages lie after the run's end.
  producer.Begin();
  for (int i = 0; i < 100; ++i) producer.Send(partition, LineOf(2000000 + i));
  producer.Flush();
  const Command run = StartRun(WriteTopicJob(topic, "end { at: AT_START }"));
  ExpectFinished(WaitFor(run, kSecondsToEnd), record);
  producer.Commit();
}

TEST_F(TopicRunTest, ACompactedTopicIsTrainedOnceAcrossItsGaps) {
  const std::string topic = broker_->NewTopic(1, {{"cleanup.policy", "compact"},
                                                  {"segment.ms", "100"},
                                                  {"segment.bytes", "20000"},
                                                  {"min.cleanable.dirty.ratio", "0.01"},
                                                  {"min.compaction.lag.ms", "0"}});
  auto producer = KafkaProducer::Create(broker_->Config(topic));
  ASSERT_TRUE(producer.ok()) << producer.status();
  int64_t sent = 0;
  const auto send = [&](int64_t key, int64_t record) {
    KafkaProducer::Message message;
    message.topic = topic;
    message.partition = 0;
    const std::string key_text = absl::StrCat(key);
    const std::string value = LineOf(record);
    message.key = key_text;
    message.value = value;
    ASSERT_TRUE((*producer)->Send(message).ok());
    // A segment must have room for all messages that are written at once.
    if (++sent % 100 == 0) {
      ASSERT_TRUE((*producer)->Flush(absl::Seconds(60)).ok());
    }
  };
  // For each of the first messages, a later message has the same key.
  int64_t records = 0;
  for (int64_t key = 0; key < 5000; ++key) send(key, 1000000 + key);
  for (; records < 5000; ++records) send(records, records);
  // The broker compacts when it has time, so the loop repeats until it has done so. The messages of
  // each round also close a segment.
  size_t left = 0;
  for (int round = 0; round < 600 && left != static_cast<size_t>(records); ++round) {
    for (int i = 0; i < 100; ++i, ++records) send(records, records);
    left = KeysAndReasons(topic).size();
  }
  ASSERT_EQ(left, static_cast<size_t>(records)) << "not all was compacted";
  const Command run = StartRun(WriteTopicJob(topic, "end { at: AT_START }"));
  ExpectFinished(WaitFor(run, kSecondsToEnd), records);
}

TEST_F(TopicRunTest, OffsetsThatAreGoneEndTheRunOrAreSkippedIfTheJobSaysSo) {
  constexpr int64_t kRecords = 20000;
  const std::string topic = broker_->NewTopic(1);
  Produce(topic, 1, 0, kRecords);
  const std::string job = WriteTopicJob(topic, "end { at: NEVER } max_wait_ms: 200");
  const Command run = StartRun(job);
  ASSERT_TRUE(WaitUntilConsumed(topic)) << ReadFile(run.err_path);
  EXPECT_EQ(Satrap({"stop", RunDir()}).exit_code, 0);
  EXPECT_EQ(WaitFor(run, kSecondsToEnd).exit_code, 0);
  // These messages arrive while the run is stopped, and expire before it continues.
  Produce(topic, 1, 10 * kRecords, 10 * kRecords + 5000);
  ASSERT_TRUE(broker_->admin().DeleteRecords({{topic, 0}, kRecords + 5000}).ok());
  Produce(topic, 1, kRecords, kRecords + 1000);

  const CommandEnd refused = Resume();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(absl::StrCat(topic, "/0")), HasSubstr("20000"),
                                 HasSubstr("25000"), HasSubstr("on_lost_offsets")));
  EXPECT_TRUE(NobodyIsLeft());

  const Command resumed =
      StartSatrap({"resume", RunDir(), "--set", "data.kafka.on_lost_offsets=SKIP"});
  ASSERT_TRUE(WaitUntilConsumed(topic)) << ReadFile(resumed.err_path);
  EXPECT_EQ(Satrap({"stop", RunDir()}).exit_code, 0);
  EXPECT_EQ(WaitFor(resumed, kSecondsToEnd).exit_code, 0);
  EXPECT_TRUE(NobodyIsLeft());
  // The records before and after the gap were trained; those inside it were not.
  ExpectEachRecordTrained(kRecords + 1000);
}

TEST_F(TopicRunTest, ATopicAndAFileOfTheSameRecordsGiveTheSameBits) {
  constexpr int64_t kRecords = 20000;
  const std::string topic = broker_->NewTopic(1);
  Produce(topic, 1, 0, kRecords);
  std::string text;
  for (int64_t record = 0; record < kRecords; ++record) {
    absl::StrAppend(&text, LineOf(record), "\n");
  }
  const std::string file = WriteFile("train.csv", text);
  const std::string reproducible = "mode: SYNC\nreproducible: true\nlanes: 1\n";
  const std::string of_file =
      WriteFile("file.textproto",
                absl::StrCat(JobText(absl::StrCat("train_files: \"", file, "\"")), reproducible));
  const CommandEnd file_run = WaitFor(StartRun(of_file, {"--set", "data_loader.replicas=1"}));
  EXPECT_EQ(file_run.exit_code, 0) << file_run.err;
  const std::string digest = ModelDigest();
  ASSERT_NE(digest, "");

  const std::string of_topic =
      WriteTopicJob(topic, "end { at: AT_START } max_wait_ms: 0", reproducible);
  const CommandEnd topic_run = WaitFor(StartSatrap({"train", of_topic, "--run_dir", Path("other"),
                                                    "--set", "data_loader.replicas=1"}),
                                       kSecondsToEnd);
  EXPECT_EQ(topic_run.exit_code, 0) << topic_run.err;
  EXPECT_THAT(ReadFile(Path("other") + "/report.json"), HasSubstr(digest));
}

}  // namespace
}  // namespace satrap
