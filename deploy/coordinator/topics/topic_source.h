// The questions that the coordinator asks about topics: which partitions exist, which offsets they
// have, what a group has committed. Also commits a group's offsets. `config` says which cluster to
// ask, and with which credentials.
//
// Implementations: KafkaTopicSource (kafka_topic_source.h), and FakeTopicSource in tests.
//
// Calls block: they wait for a broker, at most for some seconds, and then fail with UNAVAILABLE or
// DEADLINE_EXCEEDED. After any other error, waiting does not help. Not thread-safe.

#ifndef SATRAP_DEPLOY_COORDINATOR_TOPICS_TOPIC_SOURCE_H_
#define SATRAP_DEPLOY_COORDINATOR_TOPICS_TOPIC_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/kafka/partition.h"
#include "proto/kafka.pb.h"

namespace satrap {

class TopicSource {
 public:
  virtual ~TopicSource() = default;

  // The id by which the cluster identifies itself.
  virtual absl::StatusOr<std::string> ClusterId(const KafkaConfig& config) = 0;
  // All partitions of the topics that `config` names or whose names match its pattern, sorted.
  // NOT_FOUND names the topic that does not exist.
  virtual absl::StatusOr<std::vector<KafkaPartition>> Partitions(const KafkaConfig& config) = 0;

  // One range for each partition, in order. NOT_FOUND names a partition that does not exist.
  virtual absl::StatusOr<std::vector<KafkaOffsetRange>> Ranges(
      const KafkaConfig& config, absl::Span<const KafkaPartition> partitions) = 0;
  // For each partition, the first offset whose message has a timestamp of at least `time_ms` (since
  // 1970), or the latest offset if there is none. Otherwise like Ranges.
  virtual absl::StatusOr<std::vector<int64_t>> OffsetsAt(
      const KafkaConfig& config, absl::Span<const KafkaPartition> partitions, int64_t time_ms) = 0;
  // The offsets that config.group_id() has committed; absent for partitions without a commit.
  virtual absl::StatusOr<std::vector<absl::optional<int64_t>>> Committed(
      const KafkaConfig& config, absl::Span<const KafkaPartition> partitions) = 0;

  // Commits offsets for config.group_id().
  virtual absl::Status Commit(const KafkaConfig& config, absl::Span<const KafkaPlace> places) = 0;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_TOPICS_TOPIC_SOURCE_H_
