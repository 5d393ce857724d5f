// A KafkaClient owns one client of librdkafka, and keeps the last error of its connections. Only
// files of this folder include this header; the folder's other headers hide librdkafka.
//
// Thread-safe, except for the destructor. Everything that was obtained from the client (queues,
// messages, topics) must be destroyed before the client. The destructor may have to wait until a
// fetch that is waiting at the broker ends (fetch.wait.max.ms), and up to a second if a broker is
// slow. If the client read a topic that was deleted, librdkafka 2.0.2 would never finish destroying
// it; the destructor then abandons that client, with its threads, after five seconds.

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

// The last error of a client's connections. Thread-safe.
class ConnectionTrouble {
 public:
  struct Last {
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;  // since the last answer
    std::string reason;
    // True if waiting does not help, because login was refused or TLS fails. Never true once a
    // broker has answered, because then the settings are right, and a broker that refuses later is
    // only restarting.
    bool hopeless = false;
  };
  Last last() const;
  void NoteError(rd_kafka_resp_err_t code, absl::string_view reason);
  // Notes that a broker has answered a request.
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
    size_t partitions = 1;  // how many partitions a reader reads
    // Called in Poll for every message that was delivered or abandoned. Producers only.
    std::function<void(const rd_kafka_message_t&)> on_delivery;
    // Receives librdkafka's own log lines, at level Debug: anything important is also returned as a
    // status.
    Logger logger;
  };

  // Connects in the background. INVALID_ARGUMENT for settings that contradict each other, naming
  // them; other errors are those of ResolveKafkaSettings.
  static absl::StatusOr<std::unique_ptr<KafkaClient>> Create(const KafkaConfig& config,
                                                             Options options);
  ~KafkaClient();
  KafkaClient(const KafkaClient&) = delete;
  KafkaClient& operator=(const KafkaClient&) = delete;

  rd_kafka_t* get() const { return client_; }
  // "b1:9092,b2:9092"
  const std::string& brokers() const { return brokers_; }

  // Runs the callbacks that are due. If none is due, waits up to `timeout_ms` for one.
  void Poll(int timeout_ms) { rd_kafka_poll(client_, timeout_ms); }

  ConnectionTrouble::Last trouble() const { return state_->trouble.last(); }
  void NoteAnswer() { state_->trouble.NoteAnswer(); }
  // The status for "no broker has answered in time": says why, if trouble() knows, and what to do.
  // UNAVAILABLE; PERMISSION_DENIED if login or TLS failed.
  absl::Status Unreachable(absl::string_view within) const;
  // KafkaError for a request to the cluster. After a time-out the error also says what is wrong
  // with the connections, for example that the name of a broker's host does not resolve. First runs
  // the callbacks that are due, because they record such errors. REQUIRES: code is an error
  absl::Status Failed(absl::string_view doing, rd_kafka_resp_err_t code,
                      absl::string_view text = "") const;

 private:
  // The state that librdkafka's callbacks use.
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

// A list of partitions with offsets, in the form that librdkafka needs.
class TopicPartitions {
 public:
  explicit TopicPartitions(size_t size);
  ~TopicPartitions() { rd_kafka_topic_partition_list_destroy(list_); }
  TopicPartitions(const TopicPartitions&) = delete;
  TopicPartitions& operator=(const TopicPartitions&) = delete;

  void Add(const KafkaPartition& partition, int64_t offset);
  rd_kafka_topic_partition_list_t* get() const { return list_; }
  size_t size() const { return static_cast<size_t>(list_->cnt); }
  // Elements are in the order in which they were added.
  const rd_kafka_topic_partition_t& operator[](size_t i) const { return list_->elems[i]; }

 private:
  rd_kafka_topic_partition_list_t* const list_;
};

// Destroys an object of librdkafka with `kDestroy`, librdkafka's function for its type.
template <typename T, void (*kDestroy)(T*)>
struct KafkaDestroyer {
  void operator()(T* object) const { kDestroy(object); }
};
using KafkaQueue =
    std::unique_ptr<rd_kafka_queue_t, KafkaDestroyer<rd_kafka_queue_t, rd_kafka_queue_destroy>>;
using KafkaEvent =
    std::unique_ptr<rd_kafka_event_t, KafkaDestroyer<rd_kafka_event_t, rd_kafka_event_destroy>>;

// "DOING: librdkafka's text", with a code that tells what can help: UNAVAILABLE (waiting),
// NOT_FOUND (no such topic or partition), PERMISSION_DENIED, OUT_OF_RANGE (offsets), ALREADY_EXISTS
// (a topic), INVALID_ARGUMENT, DATA_LOSS (a damaged message), otherwise INTERNAL. REQUIRES: code is
// an error
absl::Status KafkaError(absl::string_view doing, rd_kafka_resp_err_t code,
                        absl::string_view text = "");

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_CLIENT_H_
