#include "tests/kafka/topic_run_fixture.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/kafka/cluster.h"
#include "common/kafka/message_batch.h"
#include "common/kafka/partition_reader.h"
#include "common/numeric/hash.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr char kJob[] = R"(
name: "topics"
global_batch_size: 128
max_staleness: 2
data {
  csv {
    columns { name: "label" kind: LABEL }
    columns { name: "record" kind: ID }
    columns { name: "C1" kind: ID }
  }
  $0
  features { name: "C1" table: "rows" }
  features { name: "record" table: "tally" }
  shuffle_rows: 512
}
tables {
  name: "rows"
  id: 0
  segments { name: "linear" dim: 1 optimizer { learning_rate: 0.1 adagrad {} } }
}
$1
model {
  layers { name: "linear" inputs: "C1.linear" sum {} }
  layers { name: "tally" inputs: "record.count" tally {} }
  layers { name: "logit" inputs: [ "linear", "tally" ] add {} }
}
dense_optimizer { learning_rate: 0.01 adam {} }
checkpoint { every_seconds: 0.3 every_steps: 40 }
data_loader { replicas: 2 }
embedding_worker { replicas: 2 }
embedding_ps { replicas: 2 }
nn_worker { replicas: 2 }
)";

// For each partition, the range of offsets that the broker has.
std::vector<std::pair<KafkaPartition, KafkaOffsetRange>> RangesOf(const KafkaConfig& config) {
  auto cluster = KafkaCluster::Connect(config);
  CHECK(cluster.ok()) << cluster.status();
  const auto partitions = (*cluster)->Partitions(config);
  CHECK(partitions.ok()) << partitions.status();
  const auto ranges = (*cluster)->Ranges(*partitions);
  CHECK(ranges.ok()) << ranges.status();
  std::vector<std::pair<KafkaPartition, KafkaOffsetRange>> all;
  for (size_t i = 0; i < partitions->size(); ++i) all.emplace_back((*partitions)[i], (*ranges)[i]);
  return all;
}

}  // namespace

KafkaBroker* TopicRunFixture::broker_ = nullptr;

void TopicRunFixture::SetUpTestSuite() { broker_ = KafkaBroker::Start().release(); }

void TopicRunFixture::TearDownTestSuite() { delete broker_; }

void TopicRunFixture::SetUp() {
  if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
  FaultFixture::SetUp();
}

uint64_t TopicRunFixture::IdOfRecord(int64_t record) const { return Xxh64(absl::StrCat(record)); }

std::string TopicRunFixture::LineOf(int64_t record) {
  return absl::StrCat(record % 3 == 0 ? 1 : 0, ",", record, ",", record % 50);
}

void TopicRunFixture::Produce(const std::string& topic, int partitions, int64_t from, int64_t to) {
  for (int partition = 0; partition < partitions; ++partition) {
    std::vector<std::string> lines;
    for (int64_t record = from; record < to; ++record) {
      if (record % partitions == partition) lines.push_back(LineOf(record));
    }
    broker_->Produce({topic, partition}, lines);
  }
}

std::string TopicRunFixture::JobText(const std::string& data) {
  return absl::Substitute(kJob, data, TallyTable());
}

std::string TopicRunFixture::WriteTopicJob(const std::string& topic, const std::string& more,
                                           const std::string& more_of_job) {
  const std::string data = absl::Substitute(
      R"(kafka { brokers: "$0" topics: "$1" group_id: "$1" $2 })", broker_->address(), topic, more);
  return WriteFile("job.textproto", absl::StrCat(JobText(data), more_of_job, "\n"));
}

int64_t TopicRunFixture::Consumed(const std::string& topic) {
  KafkaConfig config = broker_->Config(topic);
  config.set_group_id(topic);
  auto cluster = KafkaCluster::Connect(config);
  CHECK(cluster.ok()) << cluster.status();
  const auto partitions = (*cluster)->Partitions(config);
  if (!partitions.ok()) return 0;
  const auto committed = (*cluster)->Committed(*partitions);
  if (!committed.ok()) return 0;
  int64_t consumed = 0;
  for (const auto& offset : *committed) consumed += offset.value_or(0);
  return consumed;
}

bool TopicRunFixture::WaitUntilConsumed(const std::string& topic, double timeout_s) const {
  int64_t all = 0;
  for (const auto& [partition, range] : RangesOf(broker_->Config(topic))) all += range.latest;
  return WaitUntil([&] { return Consumed(topic) == all; }, timeout_s);
}

std::vector<std::pair<std::string, std::string>> TopicRunFixture::KeysAndReasons(
    const std::string& topic) {
  const KafkaConfig config = broker_->Config(topic);
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [partition, range] : RangesOf(config)) {
    auto reader = PartitionReader::Open(config, {{partition, range.earliest}}, {});
    CHECK(reader.ok()) << reader.status();
    MessageBatch batch;
    while ((*reader)->next_offset(0) < range.latest) {
      (*reader)->Wait({0}, absl::Seconds(1));
      CHECK((*reader)->Read(0, 1000, &batch).ok());
      for (size_t m = 0; m < batch.size(); ++m) {
        found.emplace_back(std::string(batch.key(m).value_or("")),
                           std::string(batch.header(m, "reason").value_or("")));
      }
    }
  }
  return found;
}

}  // namespace satrap
