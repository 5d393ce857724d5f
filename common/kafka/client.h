// A KafkaClient owns one client of librdkafka, and keeps what it last said about its connections.
// Only files of this folder include this header: the others hide librdkafka.
//
// Thread-safe, except for the destructor, before which everything that was got from the client
// (queues, messages, topics) must be destroyed. It takes as long as a fetch that waits at the
// broker (fetch.wait.max.ms), up to a second where a broker is slow, and five where librdkafka
// 2.0.2 would never end: for a client that read a topic which was deleted. That one is left behind,
// with its threads, until the process ends.

#ifndef SATRAP_COMMON_KAFKA_CLIENT_H_
#define SATRAP_COMMON_KAFKA_CLIENT_H_

#include <librdkafka/rdkafka.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/kafka/partition.h"
#include "common/kafka/settings.h"
#include "common/log/log.h"
#include "common/thread/mutex.h"
#include "proto/kafka.pb.h"

namespace satrap {

// What went wrong with a client's connections last. Thread-safe.
class ConnectionTrouble {
 public:
  struct Last {
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;  // since the last answer
    std::string reason;
    // An error that waiting does not cure: login refused, or TLS that does not come about. Never
    // once a broker has answered: the settings are right then, and a broker that refuses is
    // restarting.
    bool hopeless = false;
  };
  Last last() const;
  void NoteError(rd_kafka_resp_err_t code, absl::string_view reason);
  // A broker has done what it was asked.
  void NoteAnswer();

 private:
  mutable Mutex mutex_;
  Last last_ GUARDED_BY(mutex_);
  bool answered_ GUARDED_BY(mutex_) = false;
};

class KafkaClient {
 public:
  struct Options {
    KafkaRole role = KafkaRole::kAdmin;
    size_t partitions = 1;  // that a reader reads
    // Called in Poll for every message that was delivered or given up. Producers only.
    std::function<void(const rd_kafka_message_t&)> on_delivery;
    // librdkafka's own lines go to it as Debug: what matters becomes a status.
    Logger logger;
  };

  // Connects in the background. INVALID_ARGUMENT for settings that do not go together, naming them;
  // errors as ResolveKafkaSettings.
  static absl::StatusOr<std::unique_ptr<KafkaClient>> Create(const KafkaConfig& config,
                                                             Options options);
  ~KafkaClient();
  KafkaClient(const KafkaClient&) = delete;
  KafkaClient& operator=(const KafkaClient&) = delete;

  rd_kafka_t* get() const { return client_; }
  // "b1:9092,b2:9092"
  const std::string& brokers() const { return brokers_; }

  // Serves callbacks; waits up to `timeout_ms` for one.
  void Poll(int timeout_ms) { rd_kafka_poll(client_, timeout_ms); }

  ConnectionTrouble::Last trouble() const { return state_->trouble.last(); }
  void NoteAnswer() { state_->trouble.NoteAnswer(); }
  // The status for "no broker has answered in time": says why, as far as the trouble tells, and
  // what to do. UNAVAILABLE; PERMISSION_DENIED for a login or TLS that failed.
  absl::Status Unreachable(absl::string_view within) const;
  // KafkaError of a question to the cluster. If waiting for an answer was in vain it also says what
  // is wrong with the connections, which a time-out does not, such as the host of a broker that
  // does not resolve. Serves callbacks. REQUIRES: code is an error
  absl::Status Failed(absl::string_view doing, rd_kafka_resp_err_t code,
                      absl::string_view text = "") const;

 private:
  // What librdkafka's callbacks refer to.
  struct State {
    Options options;
    ConnectionTrouble trouble;
  };
  KafkaClient(const KafkaConfig& config, Options options);
  static void OnError(rd_kafka_t* client, int code, const char* reason, void* state);
  static void OnLog(const rd_kafka_t* client, int level, const char* facility, const char* text);
  static void OnDelivery(rd_kafka_t* client, const rd_kafka_message_t* message, void* state);

  const std::shared_ptr<State> state_;
  std::string brokers_;
  rd_kafka_t* client_ = nullptr;
};

// A list of partitions with offsets, as librdkafka takes them.
class TopicPartitions {
 public:
  explicit TopicPartitions(size_t size);
  ~TopicPartitions() { rd_kafka_topic_partition_list_destroy(list_); }
  TopicPartitions(const TopicPartitions&) = delete;
  TopicPartitions& operator=(const TopicPartitions&) = delete;

  void Add(const KafkaPartition& partition, int64_t offset);
  rd_kafka_topic_partition_list_t* get() const { return list_; }
  size_t size() const { return static_cast<size_t>(list_->cnt); }
  // Elements keep the order of Add.
  const rd_kafka_topic_partition_t& operator[](size_t i) const { return list_->elems[i]; }

 private:
  rd_kafka_topic_partition_list_t* const list_;
};

// librdkafka's objects, destroyed by the function that it has for them.
template <typename T, void (*kDestroy)(T*)>
struct KafkaDestroyer {
  void operator()(T* object) const { kDestroy(object); }
};
using KafkaQueue =
    std::unique_ptr<rd_kafka_queue_t, KafkaDestroyer<rd_kafka_queue_t, rd_kafka_queue_destroy>>;
using KafkaEvent =
    std::unique_ptr<rd_kafka_event_t, KafkaDestroyer<rd_kafka_event_t, rd_kafka_event_destroy>>;

// "DOING: librdkafka's text" with the code that says who can mend it: UNAVAILABLE (waiting),
// NOT_FOUND (no such topic or partition), PERMISSION_DENIED, OUT_OF_RANGE (offsets),
// ALREADY_EXISTS (a topic), INVALID_ARGUMENT, DATA_LOSS (a damaged message), else INTERNAL.
// REQUIRES: code is an error
absl::Status KafkaError(absl::string_view doing, rd_kafka_resp_err_t code,
                        absl::string_view text = "");

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_CLIENT_H_
