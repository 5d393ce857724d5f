#include "common/kafka/producer.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kafka/client.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

// The length of one wait for room in the queue or for acknowledgements. Each wait also handles the
// deliveries that arrive.
constexpr int kWaitMs = 100;

std::string NameOf(absl::string_view topic, int32_t partition) {
  if (partition < 0) return std::string(topic);
  return absl::StrCat(topic, "/", partition);
}

// Values are not shortened further than to this size: a broker that refuses a message of this size
// has another reason.
constexpr size_t kLeastShortened = 512;
constexpr char kFullBytes[] = "full_bytes";

void AddFullBytes(size_t bytes, rd_kafka_headers_t* headers) {
  const std::string text = absl::StrCat(bytes);
  rd_kafka_header_add(headers, kFullBytes, -1, text.data(), static_cast<ssize_t>(text.size()));
}

// The headers of `message` if only the first `sent` bytes of its value are sent.
rd_kafka_headers_t* HeadersOf(const KafkaProducer::Message& message, size_t sent) {
  const bool is_short = sent < message.value.size();
  if (message.headers.empty() && !is_short) return nullptr;
  rd_kafka_headers_t* const headers = rd_kafka_headers_new(message.headers.size() + 1);
  if (is_short) AddFullBytes(message.value.size(), headers);
  for (const auto& [name, value] : message.headers) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  }
  return headers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KafkaProducer>> KafkaProducer::Create(const KafkaConfig& config,
                                                                     Logger logger) {
  std::unique_ptr<KafkaProducer> self(new KafkaProducer());
  KafkaClient::Options options;
  options.role = KafkaRole::kProducer;
  options.logger = std::move(logger);
  KafkaProducer* const me = self.get();
  options.on_delivery = [me](const rd_kafka_message_t& message) { me->OnDelivery(message); };
  ASSIGN_OR_RETURN(self->client_, KafkaClient::Create(config, std::move(options)));
  return self;
}

// When a client is destroyed, librdkafka waits for messages in flight, so they are dropped first.
KafkaProducer::~KafkaProducer() {
  if (client_ == nullptr) return;
  rd_kafka_purge(client_->get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                     RD_KAFKA_PURGE_F_NON_BLOCKING);
}

void KafkaProducer::OnDelivery(const rd_kafka_message_t& message) {
  if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    delivered_.fetch_add(1, std::memory_order_relaxed);
    client_->NoteAnswer();
    return;
  }
  const bool too_large = message.err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
  if (too_large && message._private != nullptr && SendShortened(message)) return;
  // A time-out does not say why it happened, but the last error of the connection does.
  const std::string reason = client_->trouble().reason;
  absl::Status status = KafkaError(
      absl::StrCat("a message to ", NameOf(rd_kafka_topic_name(message.rkt), message.partition),
                   " could not be delivered"),
      message.err,
      reason.empty() ? "" : absl::StrCat(rd_kafka_err2str(message.err), " (", reason, ")"));
  MutexLock lock(&mutex_);
  if (error_.ok()) error_ = std::move(status);
}

bool KafkaProducer::SendShortened(const rd_kafka_message_t& message) {
  if (message.len < 2 * kLeastShortened) return false;
  rd_kafka_headers_t* old = nullptr;  // still owned by the message
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &old) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    headers = rd_kafka_headers_copy(old);
  } else {
    headers = rd_kafka_headers_new(1);
  }
  const void* value = nullptr;
  size_t size = 0;
  if (rd_kafka_header_get_last(headers, kFullBytes, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    AddFullBytes(message.len, headers);
  }
  const rd_kafka_resp_err_t error = rd_kafka_producev(
      client_->get(), RD_KAFKA_V_RKT(message.rkt), RD_KAFKA_V_PARTITION(message.partition),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(message.payload, message.len / 2),
      RD_KAFKA_V_KEY(message.key, message.key_len), RD_KAFKA_V_HEADERS(headers),
      RD_KAFKA_V_OPAQUE(message._private), RD_KAFKA_V_END);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) rd_kafka_headers_destroy(headers);
  return error == RD_KAFKA_RESP_ERR_NO_ERROR;
}

absl::Status KafkaProducer::first_error() const {
  MutexLock lock(&mutex_);
  return error_;
}

absl::Status KafkaProducer::Send(const Message& message, absl::Duration limit) {
  const std::string topic(message.topic);
  const int64_t deadline_ms = MonotonicMs() + absl::ToInt64Milliseconds(limit);
  absl::string_view value = message.value;  // or as much of it as fits
  for (;;) {
    // Handles deliveries, which frees room in the queue. Otherwise only Flush would do that.
    client_->Poll(0);
    RETURN_IF_ERROR(first_error());
    rd_kafka_headers_t* const headers = HeadersOf(message, value.size());
    const bool null_value = message.tombstone;
    // A null pointer means that there is no value or no key, so an empty value or key needs a
    // non-null pointer.
    const rd_kafka_resp_err_t error = rd_kafka_producev(
        client_->get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(message.partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_VALUE(null_value      ? nullptr
                         : value.empty() ? const_cast<char*>("")
                                         : const_cast<char*>(value.data()),
                         value.size()),
        RD_KAFKA_V_KEY(!message.key.has_value() ? nullptr
                       : message.key->empty()   ? ""
                                                : message.key->data(),
                       message.key.has_value() ? message.key->size() : 0),
        RD_KAFKA_V_TIMESTAMP(message.time_ms), RD_KAFKA_V_HEADERS(headers),
        // A non-null pointer tells OnDelivery that the message may be shortened.
        RD_KAFKA_V_OPAQUE(message.may_be_shortened ? this : nullptr), RD_KAFKA_V_END);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
    // The producer owns the headers only if it took the message.
    if (headers != nullptr) rd_kafka_headers_destroy(headers);
    if (error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE && message.may_be_shortened &&
        value.size() >= 2 * kLeastShortened) {
      value = value.substr(0, value.size() / 2);
      continue;
    }
    if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      return KafkaError(absl::StrCat("cannot write a message of ", message.value.size(),
                                     " bytes to ", NameOf(topic, message.partition)),
                        error);
    }
    if (MonotonicMs() >= deadline_ms) {
      return absl::UnavailableError(absl::StrCat(
          "messages to ", topic, " are not acknowledged: the queue is full; ",
          client_->Unreachable(absl::StrCat("within ", absl::FormatDuration(limit))).message()));
    }
    client_->Poll(kWaitMs);
  }
}

absl::StatusOr<bool> KafkaProducer::TryFlush(absl::Duration limit) {
  const int64_t deadline_ms = MonotonicMs() + absl::ToInt64Milliseconds(limit);
  for (;;) {
    const int64_t left_ms = deadline_ms - MonotonicMs();
    const rd_kafka_resp_err_t error =
        rd_kafka_flush(client_->get(), static_cast<int>(std::clamp<int64_t>(left_ms, 0, kWaitMs)));
    RETURN_IF_ERROR(first_error());
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return true;
    if (client_->trouble().hopeless) return client_->Unreachable("");
    if (left_ms <= 0) return false;
  }
}

absl::Status KafkaProducer::Flush(absl::Duration limit) {
  ASSIGN_OR_RETURN(const bool flushed, TryFlush(limit));
  if (flushed) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      rd_kafka_outq_len(client_->get()), " messages are not acknowledged; ",
      client_->Unreachable(absl::StrCat("within ", absl::FormatDuration(limit))).message()));
}

}  // namespace satrap
