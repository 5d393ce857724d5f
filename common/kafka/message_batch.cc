#include "common/kafka/message_batch.h"

#include <librdkafka/rdkafka.h>

namespace satrap {

void MessageBatch::Clear() {
  for (rd_kafka_message_t* message : messages_) rd_kafka_message_destroy(message);
  messages_.clear();
}

int64_t MessageBatch::offset(size_t i) const { return messages_[i]->offset; }

absl::string_view MessageBatch::value(size_t i) const {
  return {static_cast<const char*>(messages_[i]->payload), messages_[i]->len};
}

bool MessageBatch::is_tombstone(size_t i) const { return messages_[i]->payload == nullptr; }

absl::optional<absl::string_view> MessageBatch::key(size_t i) const {
  if (messages_[i]->key == nullptr) return absl::nullopt;
  return absl::string_view(static_cast<const char*>(messages_[i]->key), messages_[i]->key_len);
}

absl::optional<absl::string_view> MessageBatch::header(size_t i, const char* name) const {
  rd_kafka_headers_t* headers = nullptr;  // stays the message's
  if (rd_kafka_message_headers(messages_[i], &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return absl::nullopt;
  }
  const void* value = nullptr;
  size_t size = 0;
  if (rd_kafka_header_get_last(headers, name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      value == nullptr) {
    return absl::nullopt;
  }
  return absl::string_view(static_cast<const char*>(value), size);
}

int64_t MessageBatch::time_ms(size_t i) const {
  return rd_kafka_message_timestamp(messages_[i], nullptr);
}

}  // namespace satrap
