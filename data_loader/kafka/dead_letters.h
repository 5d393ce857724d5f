// DeadLetters writes bad records to the job's dead-letter topic, each at least once: a record that
// a loader reads again after a restart is written again. It has the same key each time,
// "topic/partition/offset/line", so readers can remove repeats, and so can the broker if the topic
// is compacted.
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_KAFKA_DEAD_LETTERS_H_
#define SATRAP_DATA_LOADER_KAFKA_DEAD_LETTERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/kafka/producer.h"
#include "common/log/log.h"
#include "proto/kafka.pb.h"

namespace satrap {

class DeadLetterSink {
 public:
  virtual ~DeadLetterSink() = default;
  // Sends a record: the value as it was read, with a header "reason" that says what is wrong with
  // it. If the record is too large for the broker, only its beginning is sent
  // (KafkaProducer::Message::may_be_shortened). Errors are those of KafkaProducer::Send.
  virtual absl::Status Send(absl::string_view key, absl::string_view value,
                            absl::string_view reason) = 0;
  // Waits a moment for the broker to acknowledge everything. Returns false if it has not done so;
  // then call again. Errors are those of KafkaProducer::TryFlush, which gives up after
  // broker_wait_seconds.
  virtual absl::StatusOr<bool> Flush() = 0;
  virtual uint64_t acknowledged() const = 0;
};

class DeadLetters final : public DeadLetterSink {
 public:
  // Makes a sink that writes to config.dead_letter_topic. Errors are those of
  // KafkaProducer::Create.
  static absl::StatusOr<std::unique_ptr<DeadLetterSink>> Create(const KafkaConfig& config,
                                                                Logger logger);

  absl::Status Send(absl::string_view key, absl::string_view value,
                    absl::string_view reason) override;
  absl::StatusOr<bool> Flush() override;
  uint64_t acknowledged() const override { return producer_->delivered(); }

 private:
  DeadLetters(const KafkaConfig& config, std::unique_ptr<KafkaProducer> producer);

  const std::string topic_;
  const absl::Duration broker_wait_;
  const std::unique_ptr<KafkaProducer> producer_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_DEAD_LETTERS_H_
