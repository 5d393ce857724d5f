#include "common/kafka/admin.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kafka/client.h"

namespace satrap {
namespace {

constexpr int kLimitMs = 15000;

using AdminOptions =
    std::unique_ptr<rd_kafka_AdminOptions_t,
                    KafkaDestroyer<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>>;
using NewTopic = std::unique_ptr<rd_kafka_NewTopic_t,
                                 KafkaDestroyer<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>>;
using DeleteTopics =
    std::unique_ptr<rd_kafka_DeleteTopic_t,
                    KafkaDestroyer<rd_kafka_DeleteTopic_t, rd_kafka_DeleteTopic_destroy>>;
using NewPartitions =
    std::unique_ptr<rd_kafka_NewPartitions_t,
                    KafkaDestroyer<rd_kafka_NewPartitions_t, rd_kafka_NewPartitions_destroy>>;
using DeleteRecordsBefore =
    std::unique_ptr<rd_kafka_DeleteRecords_t,
                    KafkaDestroyer<rd_kafka_DeleteRecords_t, rd_kafka_DeleteRecords_destroy>>;

// A request and its answer. Each call makes a Request of its own.
class Request {
 public:
  Request(const KafkaClient& client, std::string doing)
      : client_(client),
        doing_(std::move(doing)),
        queue_(rd_kafka_queue_new(client.get())),
        options_(rd_kafka_AdminOptions_new(client.get(), RD_KAFKA_ADMIN_OP_ANY)) {
    char text[256];
    rd_kafka_AdminOptions_set_request_timeout(options_.get(), kLimitMs, text, sizeof(text));
    // How long a broker may wait until all brokers have learnt of the change.
    rd_kafka_AdminOptions_set_operation_timeout(options_.get(), kLimitMs, text, sizeof(text));
  }

  rd_kafka_queue_t* queue() const { return queue_.get(); }
  rd_kafka_AdminOptions_t* options() const { return options_.get(); }

  // Waits for the answer. Returns the error of the whole request, not those of single topics.
  absl::Status Await() {
    // An event always comes, because the request itself has a shorter time limit.
    event_.reset(rd_kafka_queue_poll(queue_.get(), kLimitMs + 5000));
    if (event_ == nullptr) return client_.Failed(doing_, RD_KAFKA_RESP_ERR__TIMED_OUT);
    return Check(rd_kafka_event_error(event_.get()), rd_kafka_event_error_string(event_.get()));
  }
  absl::Status Check(rd_kafka_resp_err_t error, const char* text) const {
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
    return client_.Failed(doing_, error, text == nullptr ? "" : text);
  }
  absl::Status CheckTopics(const rd_kafka_topic_result_t** results, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      RETURN_IF_ERROR(Check(rd_kafka_topic_result_error(results[i]),
                            rd_kafka_topic_result_error_string(results[i])));
    }
    return absl::OkStatus();
  }
  rd_kafka_event_t* event() const { return event_.get(); }

 private:
  const KafkaClient& client_;
  const std::string doing_;
  const KafkaQueue queue_;
  const AdminOptions options_;
  KafkaEvent event_;
};

}  // namespace

KafkaAdmin::KafkaAdmin(std::unique_ptr<KafkaClient> client) : client_(std::move(client)) {}
KafkaAdmin::~KafkaAdmin() = default;

absl::StatusOr<std::unique_ptr<KafkaAdmin>> KafkaAdmin::Create(const KafkaConfig& config) {
  KafkaClient::Options options;
  options.role = KafkaRole::kAdmin;
  ASSIGN_OR_RETURN(auto client, KafkaClient::Create(config, std::move(options)));
  return std::unique_ptr<KafkaAdmin>(new KafkaAdmin(std::move(client)));
}

absl::Status KafkaAdmin::CreateTopic(const std::string& topic, int partitions,
                                     const std::map<std::string, std::string>& settings) {
  Request request(*client_, absl::StrCat("cannot create topic ", topic));
  char text[256] = "";
  const NewTopic new_topic(rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, text, sizeof(text)));
  if (new_topic == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("cannot create topic ", topic, ": ", text));
  }
  for (const auto& [name, value] : settings) {
    rd_kafka_NewTopic_set_config(new_topic.get(), name.c_str(), value.c_str());
  }
  rd_kafka_NewTopic_t* topics[] = {new_topic.get()};
  rd_kafka_CreateTopics(client_->get(), topics, 1, request.options(), request.queue());
  RETURN_IF_ERROR(request.Await());
  size_t count = 0;
  const auto* const result = rd_kafka_event_CreateTopics_result(request.event());
  const rd_kafka_topic_result_t** const results =
      rd_kafka_CreateTopics_result_topics(result, &count);
  return request.CheckTopics(results, count);
}

absl::Status KafkaAdmin::DeleteTopic(const std::string& topic) {
  Request request(*client_, absl::StrCat("cannot delete topic ", topic));
  const DeleteTopics object(rd_kafka_DeleteTopic_new(topic.c_str()));
  rd_kafka_DeleteTopic_t* topics[] = {object.get()};
  rd_kafka_DeleteTopics(client_->get(), topics, 1, request.options(), request.queue());
  RETURN_IF_ERROR(request.Await());
  size_t count = 0;
  const auto* const result = rd_kafka_event_DeleteTopics_result(request.event());
  const rd_kafka_topic_result_t** const results =
      rd_kafka_DeleteTopics_result_topics(result, &count);
  return request.CheckTopics(results, count);
}

absl::Status KafkaAdmin::AddPartitions(const std::string& topic, int total) {
  Request request(*client_, absl::StrCat("cannot add partitions to topic ", topic));
  char text[256] = "";
  const NewPartitions object(
      rd_kafka_NewPartitions_new(topic.c_str(), static_cast<size_t>(total), text, sizeof(text)));
  if (object == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot add partitions to topic ", topic, ": ", text));
  }
  rd_kafka_NewPartitions_t* objects[] = {object.get()};
  rd_kafka_CreatePartitions(client_->get(), objects, 1, request.options(), request.queue());
  RETURN_IF_ERROR(request.Await());
  size_t count = 0;
  const auto* const result = rd_kafka_event_CreatePartitions_result(request.event());
  const rd_kafka_topic_result_t** const results =
      rd_kafka_CreatePartitions_result_topics(result, &count);
  return request.CheckTopics(results, count);
}

absl::Status KafkaAdmin::DeleteRecords(const KafkaPlace& place) {
  Request request(*client_, absl::StrCat("cannot delete the messages of ",
                                         place.partition.ToString(), " before ", place.offset));
  TopicPartitions list(1);
  list.Add(place.partition, place.offset);
  const DeleteRecordsBefore object(rd_kafka_DeleteRecords_new(list.get()));
  rd_kafka_DeleteRecords_t* objects[] = {object.get()};
  rd_kafka_DeleteRecords(client_->get(), objects, 1, request.options(), request.queue());
  RETURN_IF_ERROR(request.Await());
  const auto* const result = rd_kafka_event_DeleteRecords_result(request.event());
  const rd_kafka_topic_partition_list_t* const offsets =
      rd_kafka_DeleteRecords_result_offsets(result);
  for (int i = 0; i < offsets->cnt; ++i) {
    RETURN_IF_ERROR(request.Check(offsets->elems[i].err, nullptr));
  }
  return absl::OkStatus();
}

}  // namespace satrap
