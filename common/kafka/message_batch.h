// A MessageBatch holds some messages of one partition, in the order of their offsets, without
// copying them: the bytes stay where librdkafka received them. Sources other than Kafka
// (message_source.h) fill it with messages of their own.
//
// Not thread-safe. It must be cleared or destroyed before the reader that filled it.

#ifndef SATRAP_COMMON_KAFKA_MESSAGE_BATCH_H_
#define SATRAP_COMMON_KAFKA_MESSAGE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

struct rd_kafka_message_s;

namespace satrap {

class MessageBatch {
 public:
  MessageBatch() = default;
  ~MessageBatch() { Clear(); }
  MessageBatch(const MessageBatch&) = delete;
  MessageBatch& operator=(const MessageBatch&) = delete;

  size_t size() const { return messages_.size() + own_.size(); }
  bool empty() const { return size() == 0; }
  void Clear();

  // The functions below are about message i. Views are valid until the batch changes. REQUIRES: i <
  // size()
  int64_t offset(size_t i) const;
  // Empty for a tombstone of a compacted topic, and for a message with an empty value.
  absl::string_view value(size_t i) const;
  bool is_tombstone(size_t i) const;
  // Absent if there is no key. A key that is present may be empty.
  absl::optional<absl::string_view> key(size_t i) const;
  // The last header of this name; absent if there is none, or if it has no value. This searches the
  // headers, so reading a header costs more than reading the key.
  absl::optional<absl::string_view> header(size_t i, const char* name) const;
  // The message's time at the broker, milliseconds since 1970; -1 if it has none.
  int64_t time_ms(size_t i) const;

  // A message that was not received from librdkafka.
  struct Message {
    int64_t offset = 0;
    std::string value;
    bool is_tombstone = false;
    absl::optional<std::string> key;
    std::map<std::string, std::string> headers;
    int64_t time_ms = -1;
  };
  // REQUIRES: the batch holds no messages of librdkafka
  void Add(Message message) { own_.push_back(std::move(message)); }

 private:
  friend class PartitionReader;
  std::vector<rd_kafka_message_s*> messages_;  // owned
  std::vector<Message> own_;                   // one of these two is empty
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_MESSAGE_BATCH_H_
