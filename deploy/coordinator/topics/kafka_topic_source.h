// The TopicSource that asks Kafka. It keeps a connection to each cluster that it has asked.
//
// Not thread-safe. The destructor takes up to a second for each connection.

#ifndef SATRAP_DEPLOY_COORDINATOR_TOPICS_KAFKA_TOPIC_SOURCE_H_
#define SATRAP_DEPLOY_COORDINATOR_TOPICS_KAFKA_TOPIC_SOURCE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/kafka/cluster.h"
#include "common/log/log.h"
#include "deploy/coordinator/topics/topic_source.h"

namespace satrap {

class KafkaTopicSource final : public TopicSource {
 public:
  // Less than 15 s, because a run with a wrong address must end with its message within 15 s.
  static constexpr absl::Duration kLimit = absl::Seconds(10);

  // `limit` is the time limit of each question, and of the connection that precedes the first one.
  explicit KafkaTopicSource(absl::Duration limit = kLimit, Logger logger = {})
      : limit_(limit), logger_(std::move(logger)) {}

  absl::StatusOr<std::string> ClusterId(const KafkaConfig& config) override;
  absl::StatusOr<std::vector<KafkaPartition>> Partitions(const KafkaConfig& config) override;
  absl::StatusOr<std::vector<KafkaOffsetRange>> Ranges(
      const KafkaConfig& config, absl::Span<const KafkaPartition> partitions) override;
  absl::StatusOr<std::vector<int64_t>> OffsetsAt(const KafkaConfig& config,
                                                 absl::Span<const KafkaPartition> partitions,
                                                 int64_t time_ms) override;
  absl::StatusOr<std::vector<absl::optional<int64_t>>> Committed(
      const KafkaConfig& config, absl::Span<const KafkaPartition> partitions) override;
  absl::Status Commit(const KafkaConfig& config, absl::Span<const KafkaPlace> places) override;

 private:
  absl::StatusOr<KafkaCluster*> ClusterOf(const KafkaConfig& config);

  const absl::Duration limit_;
  const Logger logger_;
  // The key is what determines a connection: brokers, settings, group.
  std::map<std::string, std::unique_ptr<KafkaCluster>> clusters_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_TOPICS_KAFKA_TOPIC_SOURCE_H_
