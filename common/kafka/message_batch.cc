#include "common/kafka/message_batch.h"

#include <librdkafka/rdkafka.h>

namespace satrap {

void MessageBatch::Clear() {
  for (rd_kafka_message_t* message : messages_) rd_kafka_message_destroy(message);
  messages_.clear();
  own_.clear();
}

int64_t MessageBatch::offset(size_t i) const {
  return own_.empty() ? messages_[i]->offset : own_[i].offset;
}

absl::string_view MessageBatch::value(size_t i) const {
  if (!own_.empty()) return own_[i].value;
  return {static_cast<const char*>(messages_[i]->payload), messages_[i]->len};
}

bool MessageBatch::is_tombstone(size_t i) const {
  return own_.empty() ? messages_[i]->payload == nullptr : own_[i].is_tombstone;
}

absl::optional<absl::string_view> MessageBatch::key(size_t i) const {
  if (!own_.empty()) {
    if (!own_[i].key.has_value()) return absl::nullopt;
    return absl::string_view(*own_[i].key);
  }
  if (messages_[i]->key == nullptr) return absl::nullopt;
  return absl::string_view(static_cast<const char*>(messages_[i]->key), messages_[i]->key_len);
}

absl::optional<absl::string_view> MessageBatch::header(size_t i, const char* name) const {
  if (!own_.empty()) {
    const auto found = own_[i].headers.find(name);
    if (found == own_[i].headers.end()) return absl::nullopt;
    return absl::string_view(found->second);
  }
  rd_kafka_headers_t* headers = nullptr;  // still owned by the message
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
  return own_.empty() ? rd_kafka_message_timestamp(messages_[i], nullptr) : own_[i].time_ms;
}

}  // namespace satrap
