// A KafkaProducer writes messages. Each is written once in its partition even if the connection
// breaks, and all replicas acknowledge it (an idempotent producer, acks=all). The messages of one
// partition keep their order.
//
// Thread-safe.

#ifndef SATRAP_COMMON_KAFKA_PRODUCER_H_
#define SATRAP_COMMON_KAFKA_PRODUCER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/log/log.h"
#include "common/thread/mutex.h"
#include "proto/kafka.pb.h"

struct rd_kafka_message_s;

namespace satrap {

class KafkaClient;

class KafkaProducer {
 public:
  // Connects in the background. Errors are those of ResolveKafkaSettings.
  static absl::StatusOr<std::unique_ptr<KafkaProducer>> Create(const KafkaConfig& config,
                                                               Logger logger = {});
  // Messages that are not acknowledged yet are lost, so call Flush first.
  ~KafkaProducer();

  struct Message {
    absl::string_view topic;
    int32_t partition = -1;  // -1: by the hash of the key; without a key, any
    absl::string_view value;
    bool tombstone = false;  // no value at all; `value` must be empty
    absl::optional<absl::string_view> key;
    int64_t time_ms = 0;  // since 1970; 0: now
    std::vector<std::pair<std::string, std::string>> headers;
    // If the broker does not take a message of this size, half of the value is sent instead, then a
    // quarter, and so on. The header "full_bytes" then has the size of the whole value.
    bool may_be_shortened = false;
  };
  // Copies the message and queues it. While the queue (librdkafka's queue.buffering.*) is full,
  // waits for at most `limit`. UNAVAILABLE, naming the topic, if it stayed full; INVALID_ARGUMENT
  // if the message is too large; NOT_FOUND for a topic or partition that does not exist; otherwise
  // the error of an earlier message that could not be delivered. Errors other than UNAVAILABLE for
  // a full queue name the topic and, if it is known, the partition.
  absl::Status Send(const Message& message, absl::Duration limit = absl::Seconds(30));

  // Waits, at most `limit`, until every message is acknowledged; false if time ran out. Returns the
  // error of the first message that could not be delivered, naming its topic, partition and cause;
  // so does every later call. A message is abandoned after broker_wait_seconds, unless the job sets
  // message.timeout.ms.
  absl::StatusOr<bool> TryFlush(absl::Duration limit);
  // Like TryFlush, but UNAVAILABLE if time ran out, with the number of messages that are left.
  absl::Status Flush(absl::Duration limit);

  // Messages acknowledged so far. Counted in Send and Flush, so it may lag behind the broker.
  uint64_t delivered() const { return delivered_.load(std::memory_order_relaxed); }

 private:
  KafkaProducer() = default;
  void OnDelivery(const rd_kafka_message_s& message);
  // Sends half of a message that was too large for the broker; false if the message must not be
  // shortened further.
  bool SendShortened(const rd_kafka_message_s& message);
  absl::Status first_error() const;

  std::unique_ptr<KafkaClient> client_;
  std::atomic<uint64_t> delivered_{0};
  mutable Mutex mutex_;
  absl::Status error_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_PRODUCER_H_
