#include "deploy/coordinator/topics/kafka_topic_source.h"

#include "common/base/status_macros.h"

namespace satrap {

absl::StatusOr<KafkaCluster*> KafkaTopicSource::ClusterOf(const KafkaConfig& config) {
  KafkaConfig connection;
  *connection.mutable_brokers() = config.brokers();
  *connection.mutable_settings() = config.settings();
  connection.set_group_id(config.group_id());
  std::unique_ptr<KafkaCluster>& cluster = clusters_[connection.SerializeAsString()];
  if (cluster == nullptr) {
    ASSIGN_OR_RETURN(cluster, KafkaCluster::Connect(connection, limit_, logger_));
  }
  return cluster.get();
}

absl::StatusOr<std::string> KafkaTopicSource::ClusterId(const KafkaConfig& config) {
  ASSIGN_OR_RETURN(const KafkaCluster* cluster, ClusterOf(config));
  return cluster->id();
}

absl::StatusOr<std::vector<KafkaPartition>> KafkaTopicSource::Partitions(
    const KafkaConfig& config) {
  ASSIGN_OR_RETURN(const KafkaCluster* cluster, ClusterOf(config));
  return cluster->Partitions(config);
}

absl::StatusOr<std::vector<KafkaOffsetRange>> KafkaTopicSource::Ranges(
    const KafkaConfig& config, absl::Span<const KafkaPartition> partitions) {
  ASSIGN_OR_RETURN(const KafkaCluster* cluster, ClusterOf(config));
  return cluster->Ranges(partitions);
}

absl::StatusOr<std::vector<int64_t>> KafkaTopicSource::OffsetsAt(
    const KafkaConfig& config, absl::Span<const KafkaPartition> partitions, int64_t time_ms) {
  ASSIGN_OR_RETURN(const KafkaCluster* cluster, ClusterOf(config));
  return cluster->OffsetsAt(partitions, time_ms);
}

absl::StatusOr<std::vector<absl::optional<int64_t>>> KafkaTopicSource::Committed(
    const KafkaConfig& config, absl::Span<const KafkaPartition> partitions) {
  ASSIGN_OR_RETURN(const KafkaCluster* cluster, ClusterOf(config));
  return cluster->Committed(partitions);
}

absl::Status KafkaTopicSource::Commit(const KafkaConfig& config,
                                      absl::Span<const KafkaPlace> places) {
  ASSIGN_OR_RETURN(const KafkaCluster* cluster, ClusterOf(config));
  return cluster->Commit(places);
}

}  // namespace satrap
