#include "common/kafka/testing/mock_brokers.h"

// rdkafka_mock.h must follow rdkafka.h.
#include <librdkafka/rdkafka.h>
// clang-format off
#include <librdkafka/rdkafka_mock.h>
// clang-format on

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/kafka/producer.h"

namespace satrap {
namespace {

// The numbers of requests in Kafka's protocol.
constexpr int16_t kFetch = 1;
constexpr int16_t kListOffsets = 2;

std::unique_ptr<KafkaClient> NewOwner() {
  KafkaConfig config;
  config.add_brokers("127.0.0.1:9");  // never contacted
  auto client = KafkaClient::Create(config, KafkaClient::Options());
  CHECK(client.ok()) << client.status();
  return *std::move(client);
}

void RefuseListOffsets(rd_kafka_mock_cluster_t* cluster, int count, rd_kafka_resp_err_t error) {
  for (int i = 0; i < count; ++i) {
    rd_kafka_mock_push_request_errors(cluster, kListOffsets, 1, error);
  }
}

}  // namespace

MockBrokers::MockBrokers(int count)
    : count_(count), owner_(NewOwner()), cluster_(rd_kafka_mock_cluster_new(owner_->get(), count)) {
  CHECK(cluster_ != nullptr);
}

MockBrokers::~MockBrokers() { rd_kafka_mock_cluster_destroy(cluster_); }

KafkaConfig MockBrokers::Config() const {
  KafkaConfig config;
  for (const absl::string_view broker :
       absl::StrSplit(rd_kafka_mock_cluster_bootstraps(cluster_), ',')) {
    config.add_brokers(std::string(broker));
  }
  return config;
}

void MockBrokers::MakeTopic(const std::string& topic, int partitions) {
  CHECK(rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, /*replicas=*/1) == 0);
  for (int partition = 0; partition < partitions; ++partition) {
    CHECK(rd_kafka_mock_partition_set_leader(cluster_, topic.c_str(), partition,
                                             partition % count_ + 1) == 0);
  }
}

void MockBrokers::Produce(const KafkaPartition& partition, const std::vector<std::string>& values) {
  auto producer = KafkaProducer::Create(Config());
  CHECK(producer.ok()) << producer.status();
  for (const std::string& value : values) {
    KafkaProducer::Message message;
    message.topic = partition.topic;
    message.partition = partition.partition;
    message.value = value;
    CHECK_OK((*producer)->Send(message));
  }
  CHECK_OK((*producer)->Flush(absl::Seconds(60)));
}

void MockBrokers::TakeDown(int broker) {
  CHECK(rd_kafka_mock_broker_set_down(cluster_, broker + 1) == 0);
}

void MockBrokers::BringUp(int broker) {
  CHECK(rd_kafka_mock_broker_set_up(cluster_, broker + 1) == 0);
}

void MockBrokers::RefuseOffsets(int count) {
  RefuseListOffsets(cluster_, count, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
}

void MockBrokers::ForbidOffsets(int count) {
  RefuseListOffsets(cluster_, count, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
}

void MockBrokers::HideMessagesOnce() {
  rd_kafka_mock_push_request_errors(cluster_, kFetch, 1, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
}

}  // namespace satrap
