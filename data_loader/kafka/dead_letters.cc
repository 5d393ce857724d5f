#include "data_loader/kafka/dead_letters.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

// How long one call waits for acknowledgements. Short, so that a broker that does not answer does
// not block the loader's thread.
constexpr absl::Duration kFlushSlice = absl::Milliseconds(50);
// If a record is too large, the broker refuses its whole batch. Batches are small, so that few
// other records are refused with it. Most topics accept batches of this size.
constexpr char kBatchBytes[] = "16384";

absl::Status InTopic(const std::string& topic, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("data.kafka.dead_letter_topic ", topic, ": ", status.message()));
}

}  // namespace

DeadLetters::DeadLetters(const KafkaConfig& config, std::unique_ptr<KafkaProducer> producer)
    : topic_(config.dead_letter_topic()),
      broker_wait_(absl::Seconds(config.broker_wait_seconds())),
      producer_(std::move(producer)) {}

absl::StatusOr<std::unique_ptr<DeadLetterSink>> DeadLetters::Create(const KafkaConfig& config,
                                                                    Logger logger) {
  KafkaConfig with_batches = config;
  const auto& settings = config.settings();
  if (std::none_of(settings.begin(), settings.end(),
                   [](const KafkaSetting& setting) { return setting.name() == "batch.size"; })) {
    KafkaSetting* const setting = with_batches.add_settings();
    setting->set_name("batch.size");
    setting->set_value(kBatchBytes);
  }
  ASSIGN_OR_RETURN(auto producer, KafkaProducer::Create(with_batches, std::move(logger)));
  return std::unique_ptr<DeadLetterSink>(new DeadLetters(config, std::move(producer)));
}

absl::Status DeadLetters::Send(absl::string_view key, absl::string_view value,
                               absl::string_view reason) {
  KafkaProducer::Message message;
  message.topic = topic_;
  message.key = key;
  message.value = value;
  message.headers.emplace_back("reason", std::string(reason));
  message.may_be_shortened = true;
  return InTopic(topic_, producer_->Send(message, broker_wait_));
}

absl::StatusOr<bool> DeadLetters::Flush() {
  absl::StatusOr<bool> flushed = producer_->TryFlush(kFlushSlice);
  if (!flushed.ok()) return InTopic(topic_, flushed.status());
  return flushed;
}

}  // namespace satrap
