// A TopicStream stands for one stream that reads topics, and is shared by a loader's batch makers
// of that stream. In addition to what the StreamSpec has, it holds the access to brokers, the sink
// of dead letters, and the progress.
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

// The functions by which a loader reads topics. Tests replace them.
struct TopicAccess {
  // Like PartitionReader::Open. `trains`: the source is for the train stream.
  std::function<absl::StatusOr<std::unique_ptr<MessageSource>>(
      const KafkaConfig&, std::vector<KafkaPlace>, bool trains)>
      open_source;
  std::function<absl::StatusOr<std::unique_ptr<DeadLetterSink>>(const KafkaConfig&)>
      open_dead_letters;
  std::function<int64_t()> now_ms;  // the time of a monotonic clock
};
// Reads topics from brokers. With `anchors`, which may be null, notices if a topic of the train
// stream was deleted and made anew while the run was stopped (topic_anchors.h). Evaluation streams
// have no anchors: they may read topics with the same names from another cluster, and are read from
// their start each time.
TopicAccess AccessToBrokers(const Logger& logger, std::shared_ptr<TopicAnchors> anchors = nullptr);

struct TopicStream {
  TopicStream(const KafkaConfig& kafka, TopicAccess topic_access)
      : config(kafka), access(std::move(topic_access)), progress(kafka) {}

  const KafkaConfig config;
  const TopicAccess access;
  // Whether some partition has no end. Then the stream has only one epoch, and may get further
  // partitions.
  bool endless = false;
  std::unique_ptr<DeadLetterSink> dead_letters;  // null: bad records go to the quarantine files
  // The first labels, if this is the train stream of a new run; otherwise null. They are checked
  // before any block is sent.
  std::unique_ptr<FirstLabels> first_labels;
  TopicProgress progress;

  // Fails if the losses do not accept the labels that were read so far. Call before each block is
  // sent, so that nothing is trained with labels that are not accepted.
  absl::Status CheckFirstLabels() const {
    return first_labels == nullptr ? absl::OkStatus() : first_labels->CheckSoFar();
  }
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_TOPIC_STREAM_H_
