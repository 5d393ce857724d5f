// FakeTopics stand in for a cluster in tests. They have partitions in memory, which may be
// compacted, expire, or be replaced by a new topic of the same name; a clock that moves only while
// a reader waits or when the test moves it; and a dead-letter topic.
//
// Not thread-safe: one thread reads and writes.

#ifndef SATRAP_DATA_LOADER_KAFKA_FAKE_TOPIC_H_
#define SATRAP_DATA_LOADER_KAFKA_FAKE_TOPIC_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/kafka/message_source.h"
#include "common/kafka/partition.h"
#include "data_loader/kafka/topic_stream.h"

namespace satrap {

class FakeTopics {
 public:
  struct Letter {
    std::string key;
    std::string value;
    std::string reason;
    bool is_flushed = false;
  };

  // Appends a message to the partition and returns its offset.
  int64_t Write(const KafkaPartition& to, std::string value, int64_t time_ms = -1) {
    MessageBatch::Message message;
    message.value = std::move(value);
    message.time_ms = time_ms;
    return WriteMessage(to, std::move(message));
  }
  int64_t WriteMessage(const KafkaPartition& to, MessageBatch::Message message) {
    Log& log = logs_[to];
    message.offset = log.end++;
    log.messages[message.offset] = message;
    return message.offset;
  }
  // Appends `offsets` offsets without messages, as an aborted transaction does.
  void Skip(const KafkaPartition& in, int64_t offsets) { logs_[in].end += offsets; }
  // Removes a message, as compaction does. Returns its value, or "" if there is no such message.
  std::string Remove(const KafkaPartition& in, int64_t offset) {
    auto message = logs_[in].messages.extract(offset);
    return message.empty() ? "" : std::move(message.mapped().value);
  }
  // Removes all messages before `offset`, as retention does.
  void Expire(const KafkaPartition& in, int64_t offset) { logs_[in].begin = offset; }
  void Delete(const KafkaPartition& partition) { logs_.erase(partition); }
  int64_t end(const KafkaPartition& of) { return logs_[of].end; }
  // Messages from `offset` on are in the topic, but do not reach readers until the next call.
  void HoldBack(const KafkaPartition& in, int64_t offset) { logs_[in].held_back = offset; }

  // Access to this object, which must outlive everything that is opened with it.
  TopicAccess Access();

  int64_t now_ms = 1000;
  size_t max_read = 1000;  // the most messages that a Read returns
  std::vector<Letter> letters;
  absl::Status letter_error;          // the error that Flush returns
  int flushes_in_vain = 0;            // how many more calls of Flush find no broker
  std::vector<int64_t> queue_bytes;   // of each source, in the order in which they were opened
  std::vector<KafkaPlace> opened;     // their places, in the same order
  std::vector<bool> opened_to_train;  // by source: whether the train stream reads it
  int64_t messages_read = 0;
  int open_sources = 0;
  std::function<void()> on_wait;  // called when a reader has waited in vain; may be null

 private:
  struct Log {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t held_back = std::numeric_limits<int64_t>::max();
    std::map<int64_t, MessageBatch::Message> messages;
  };

  class Source;
  class Sink;

  std::map<KafkaPartition, Log> logs_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_FAKE_TOPIC_H_
