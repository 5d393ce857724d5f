// A TopicStream is what the batch makers of one stream from topics share at a loader, apart from
// the StreamSpec: how brokers are reached, dead letters, progress.
//
// Thread-safe, as its members are.

#ifndef SATRAP_DATA_LOADER_KAFKA_TOPIC_STREAM_H_
#define SATRAP_DATA_LOADER_KAFKA_TOPIC_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/kafka/message_source.h"
#include "common/kafka/partition.h"
#include "common/log/log.h"
#include "data_loader/check/first_labels.h"
#include "data_loader/kafka/dead_letters.h"
#include "data_loader/kafka/topic_anchors.h"
#include "data_loader/kafka/topic_progress.h"
#include "proto/kafka.pb.h"

namespace satrap {

// What a loader needs from outside to read topics. Tests replace it.
struct TopicAccess {
  // As PartitionReader::Open. `trains` is whether the train stream reads the source.
  std::function<absl::StatusOr<std::unique_ptr<MessageSource>>(
      const KafkaConfig&, std::vector<KafkaPlace>, bool trains)>
      open_source;
  std::function<absl::StatusOr<std::unique_ptr<DeadLetterSink>>(const KafkaConfig&)>
      open_dead_letters;
  std::function<int64_t()> now_ms;  // the time of a monotonic clock
};
// With `anchors`, if it is not null, a topic of the train stream that was made anew while the run
// was stopped is noticed (topic_anchors.h). Evaluation streams have none: they may read the same
// topic names of another cluster, and are read from their start each time.
TopicAccess AccessToBrokers(const Logger& logger, std::shared_ptr<TopicAnchors> anchors = nullptr);

struct TopicStream {
  TopicStream(const KafkaConfig& kafka, TopicAccess topic_access)
      : config(kafka), access(std::move(topic_access)), progress(kafka) {}

  const KafkaConfig config;
  const TopicAccess access;
  // Some partition of the stream never ends, so the stream has one epoch and may grow.
  bool endless = false;
  std::unique_ptr<DeadLetterSink> dead_letters;  // null: bad records go to the quarantine files
  // The first labels, in a train stream whose run begins from nothing; else null. They are checked
  // before any block that was read can be sent.
  std::unique_ptr<FirstLabels> first_labels;
  TopicProgress progress;

  // An error if the losses do not take the labels that were read so far. Call before a block is
  // sent, so that nothing is trained with such labels.
  absl::Status CheckFirstLabels() const {
    return first_labels == nullptr ? absl::OkStatus() : first_labels->CheckSoFar();
  }
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_TOPIC_STREAM_H_
