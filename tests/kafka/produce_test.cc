// Tests `satrap produce` and `satrap topics` against a real broker.

#include "data_loader/kafka/produce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/kafka/partition_reader.h"
#include "common/testing/temp_dir.h"
#include "common/thread/clock.h"
#include "data_loader/kafka/produce_synthetic.h"
#include "data_loader/parser/record_parser.h"
#include "data_loader/synthetic/click_log.h"
#include "deploy/coordinator/topics/kafka_topic_source.h"
#include "tests/kafka/kafka_broker.h"

namespace satrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Read {
  std::string value;
  std::string key;
  int64_t time_ms = 0;
};

class KafkaProduceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { broker_ = KafkaBroker::Start().release(); }
  static void TearDownTestSuite() { delete broker_; }
  void SetUp() override {
    if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
    options_.kafka = broker_->Config("");
    options_.topic = broker_->NewTopic(1);
  }

  static absl::Status Run(const ProduceOptions& options, ProduceProgress* last = nullptr) {
    return Produce(options, [last](const ProduceProgress& progress) {
      if (last != nullptr) *last = progress;
      return true;
    });
  }
  // The first `count` messages of the topic.
  std::vector<Read> ReadBack(size_t count) {
    auto reader = PartitionReader::Open(options_.kafka, {{{options_.topic, 0}, 0}}, Logger());
    CHECK(reader.ok()) << reader.status();
    std::vector<Read> read;
    MessageBatch batch;
    while (read.size() < count && (*reader)->Wait({0}, absl::Seconds(60))) {
      CHECK_OK((*reader)->Read(0, 1000, &batch));
      for (size_t i = 0; i < batch.size(); ++i) {
        read.push_back({std::string(batch.value(i)), std::string(batch.key(i).value_or("")),
                        batch.time_ms(i)});
      }
    }
    batch.Clear();
    return read;
  }
  // Runs the program with these arguments and the broker's address. Returns its output.
  static std::string Program(const std::string& arguments, int* code) {
    FILE* const pipe = popen(
        absl::StrCat("deploy/kafka/kafka ", arguments, " --brokers ", broker_->address(), " 2>&1")
            .c_str(),
        "r");
    std::string output;
    char text[256];
    while (std::fgets(text, sizeof(text), pipe) != nullptr) output += text;
    *code = WEXITSTATUS(pclose(pipe));
    return output;
  }

  static KafkaBroker* broker_;
  TempDir dir_;
  ProduceOptions options_;
};

KafkaBroker* KafkaProduceTest::broker_ = nullptr;

TEST_F(KafkaProduceTest, EveryLineOfEveryFileIsWrittenOnceAndInOrder) {
  std::string lines;
  for (int i = 0; i < 10000; ++i) absl::StrAppend(&lines, "line", i, "\r\n");
  options_.files = {dir_.Write("a", lines), dir_.Write("b", "last\n\n")};
  ProduceProgress progress;
  const absl::Status status = Run(options_, &progress);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(progress.lines, 10001u);
  EXPECT_EQ(progress.fraction, 1);
  const std::vector<Read> read = ReadBack(10001);
  ASSERT_EQ(read.size(), 10001u);
  for (int i = 0; i < 10000; ++i) {
    ASSERT_EQ(read[static_cast<size_t>(i)].value, absl::StrCat("line", i));
  }
  EXPECT_EQ(read.back().value, "last");
}

TEST_F(KafkaProduceTest, KeysTimesAndSeveralLinesOfAMessageArrive) {
  options_.files = {dir_.Write("a", "1700000000\tx\n1700000001\ty\n1700000002\tz\n")};
  options_.message.lines_per_message = 2;
  options_.message.key_column = "2";
  options_.message.time_column = "1";
  ASSERT_TRUE(Run(options_).ok());
  const std::vector<Read> read = ReadBack(2);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].value, "1700000000\tx\n1700000001\ty");
  EXPECT_EQ(read[0].key, "x");
  EXPECT_EQ(read[0].time_ms, 1700000000000);
  EXPECT_EQ(read[1].key, "z");
}

TEST_F(KafkaProduceTest, RecordsAreReadAsTheLinesTheyWereMadeOf) {
  JobConfig job;
  job.mutable_data()->mutable_libsvm();
  options_.job = job;
  options_.message.format = MessageOptions::kRecord;
  options_.files = {dir_.Write("a", "1 7:0.5 9:2\n0 8:1\n")};
  ASSERT_TRUE(Run(options_).ok());
  const RecordSchema schema = SchemaOf(job.data());
  RecordBlock block(schema);
  const auto parser = NewRecordParser(schema);
  for (const Read& read : ReadBack(2)) {
    ASSERT_EQ(parser->Parse(read.value, &block).kind, ParseResult::kRecord);
  }
  EXPECT_EQ(block.label(0), 1);
  EXPECT_EQ(block.list_ids(0, 0), (std::vector<uint64_t>{7, 9}));
  EXPECT_EQ(block.list_values(1, 0), (std::vector<float>{1}));
}

TEST_F(KafkaProduceTest, TheSyntheticLogIsWrittenAsRecords) {
  SyntheticProduceOptions options;
  options.kafka = options_.kafka;
  options.topic = options_.topic;
  options.format.set_numeric_features(2);
  options.format.add_vocabulary_sizes(5);
  options.format.set_interacting_features(1);
  options.records = 100;
  uint64_t last = 0;
  const absl::Status status = ProduceSynthetic(options, [&last](uint64_t records) {
    last = records;
    return true;
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(last, 100u);
  DataConfig data;
  *data.mutable_synthetic() = options.format;
  const RecordSchema schema = SchemaOf(data);
  RecordBlock read(schema);
  RecordBlock made(schema);
  const ClickLog log(options.format);
  const auto parser = NewRecordParser(schema);
  for (const Read& message : ReadBack(100)) {
    log.Append(TRAIN_STREAM, made.rows(), &made);
    ASSERT_EQ(parser->Parse(message.value, &read).kind, ParseResult::kRecord);
  }
  ASSERT_EQ(read.rows(), 100u);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(read.label(i), made.label(i));
    EXPECT_EQ(read.ids(i)[0], made.ids(i)[0]);
    EXPECT_EQ(read.numerics(i)[1], made.numerics(i)[1]);
  }
}

TEST_F(KafkaProduceTest, TheProgramsMakeATopicAndWriteToItsPartitionsInTurn) {
  const std::string job = dir_.Write("job.textproto", R"(
      data { synthetic { vocabulary_sizes: 5 interacting_features: 0 }
             features { name: 'C1' table: 'ids' } }
      tables { name: 'ids' id: 0 segments { name: 'linear' dim: 1 } }
      model { layers { name: 'logit' inputs: '*.linear' sum {} } })");
  int code = -1;
  std::string output = Program("topics in-turn --make 4", &code);
  EXPECT_EQ(code, 0) << output;
  output = Program("topics in-turn --make 4", &code);
  EXPECT_EQ(code, 1) << output;
  output = Program(absl::StrCat("produce --topic in-turn --records 10 --synthetic ", job), &code);
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, HasSubstr("100%  10 lines, 10 messages"));
  output = Program("topics in-turn", &code);
  for (int partition = 0; partition < 4; ++partition) {
    EXPECT_THAT(output, testing::ContainsRegex(absl::StrCat("in-turn +", partition, " +0 +",
                                                            partition < 2 ? 3 : 2, "\n")));
  }
}

TEST_F(KafkaProduceTest, ARateIsKept) {
  options_.files = {dir_.Write("a", "1\n2\n3\n4\n5\n6\n")};
  options_.lines_per_second = 5;
  const int64_t begin_ms = MonotonicMs();
  ASSERT_TRUE(Run(options_).ok());
  // The sixth line is due after a second.
  EXPECT_GE(MonotonicMs() - begin_ms, 1000);
}

// A broker whose second listener tells clients a name that does not resolve. This may happen to a
// broker in a container, or to one that is reached through an address of a cloud provider. The test
// makes the topic through the first listener.
class UnresolvedBrokerTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<int> ports = FreePorts(3);
    const std::string plain = absl::StrCat("127.0.0.1:", ports[0]);
    named_ = absl::StrCat("127.0.0.1:", ports[1]);
    const std::string controller = absl::StrCat("127.0.0.1:", ports[2]);
    told_ = absl::StrCat("no-such-host.invalid:", ports[1]);
    broker_ = KafkaBroker::Start(
        {absl::StrCat("listeners=PLAINTEXT://", plain, ",NAMED://", named_, ",CONTROLLER://",
                      controller),
         absl::StrCat("advertised.listeners=PLAINTEXT://", plain, ",NAMED://", told_),
         absl::StrCat("controller.quorum.voters=1@", controller),
         "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,NAMED:PLAINTEXT,CONTROLLER:PLAINTEXT"},
        plain);
    if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
    topic_ = broker_->NewTopic(1);
    kafka_.add_brokers(named_);
  }
  // Expects an error within the promised time. It must name the host that failed and say where its
  // name comes from.
  void ExpectNamed(const std::function<absl::Status()>& ask) const {
    const int64_t begin_ms = MonotonicMs();
    const absl::Status status = ask();
    EXPECT_LT(MonotonicMs() - begin_ms, 15000);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(told_), HasSubstr("Failed to resolve"),
                      HasSubstr("advertised.listeners"), HasSubstr("at " + named_)));
  }

  std::unique_ptr<KafkaBroker> broker_;
  TempDir dir_;
  KafkaConfig kafka_;  // the listener with the name
  std::string topic_;
  std::string named_;  // its address
  std::string told_;   // what it tells clients
};

TEST_F(UnresolvedBrokerTest, IsNamedByWhoeverWritesAndReads) {
  ProduceOptions options;
  options.kafka = kafka_;
  options.topic = topic_;
  options.files = {dir_.Write("a", "1\n2\n")};
  ExpectNamed([&] { return Produce(options, [](const ProduceProgress&) { return true; }); });
  SyntheticProduceOptions synthetic;
  synthetic.kafka = kafka_;
  synthetic.topic = topic_;
  synthetic.format.add_vocabulary_sizes(5);
  ExpectNamed([&] { return ProduceSynthetic(synthetic, [](uint64_t) { return true; }); });
  // Queries the broker as the coordinator of a new run does.
  KafkaTopicSource source;
  ExpectNamed([&] { return source.Ranges(kafka_, {KafkaPartition{topic_, 0}}).status(); });
}

TEST_F(KafkaProduceTest, AnErrorNamesFileAndLineOrTopic) {
  options_.files = {dir_.Write("a", "1\tx\n2\n")};
  options_.message.key_column = "2";
  EXPECT_THAT(std::string(Run(options_).message()),
              AllOf(HasSubstr("a:2: "), HasSubstr("no column 2 in the line: '2'")));
  options_.message.key_column = "";
  options_.topic = "not-there";
  EXPECT_THAT(std::string(Run(options_).message()), HasSubstr("no topic not-there"));
}

TEST_F(KafkaProduceTest, TheProgramsWriteAndTell) {
  const std::string file = dir_.Write("a", "1\n2\n3\n");
  int code = -1;
  std::string output = Program(absl::StrCat("produce ", file, " --topic ", options_.topic), &code);
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, HasSubstr("100%  3 lines, 3 messages"));
  output = Program(absl::StrCat("topics ", options_.topic, " --group nobody"), &code);
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, testing::ContainsRegex(options_.topic + " +0 +0 +3 +- +3\n"));
  output = Program("topics not-there", &code);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output, HasSubstr("error: there is no topic not-there"));
  output = Program("produce --topik x", &code);
  EXPECT_EQ(code, 2);
}

}  // namespace
}  // namespace satrap
