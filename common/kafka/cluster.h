// A KafkaCluster answers questions about topics: their partitions, the offsets that the broker has,
// the offsets at a given time, and what a group has committed. The coordinator uses it to turn a
// job's start and end into offsets; tools print its answers.
//
// Every call waits for the broker, at most `limit`, and then fails with UNAVAILABLE. Thread-safe.

#ifndef SATRAP_COMMON_KAFKA_CLUSTER_H_
#define SATRAP_COMMON_KAFKA_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/kafka/partition.h"
#include "common/log/log.h"
#include "proto/kafka.pb.h"

namespace satrap {

class KafkaClient;

class KafkaCluster {
 public:
  static constexpr absl::Duration kLimit = absl::Seconds(15);

  // Asks a broker for the cluster's id. If there is no answer, the error comes within `limit`,
  // names the brokers and says what to check: UNAVAILABLE if no broker can be reached;
  // PERMISSION_DENIED, at once, if login or TLS fails. Other errors are those of
  // ResolveKafkaSettings.
  static absl::StatusOr<std::unique_ptr<KafkaCluster>> Connect(const KafkaConfig& config,
                                                               absl::Duration limit = kLimit,
                                                               Logger logger = {});
  ~KafkaCluster();

  // The cluster's own id. Restarts do not change it. A cluster that was set up anew has another id,
  // so one can tell that its offsets refer to other messages.
  const std::string& id() const { return id_; }

  // All partitions of `config`'s topics and of those that match its pattern, sorted. NOT_FOUND
  // names a topic that does not exist (or that the login has no right to see), or a pattern that
  // matches nothing.
  absl::StatusOr<std::vector<KafkaPartition>> Partitions(const KafkaConfig& config) const;
  // The partitions of all topics except the broker's own (__consumer_offsets).
  absl::StatusOr<std::vector<KafkaPartition>> AllPartitions() const;

  // One element for each partition, in order. NOT_FOUND names a partition that does not exist.
  absl::StatusOr<std::vector<KafkaOffsetRange>> Ranges(
      absl::Span<const KafkaPartition> partitions) const;
  // The first offset whose message has a time of at least `time_ms` (since 1970), or the latest
  // offset if there is none. A message with such a time that is written during the call has this
  // offset or a later one. One element for each partition, in order; errors are those of Ranges.
  absl::StatusOr<std::vector<int64_t>> OffsetsAt(absl::Span<const KafkaPartition> partitions,
                                                 int64_t time_ms) const;

  // The offsets that KafkaConfig.group_id has committed; absent for partitions without a commit.
  absl::StatusOr<std::vector<absl::optional<int64_t>>> Committed(
      absl::Span<const KafkaPartition> partitions) const;
  // Commits offsets for the group. Succeeds only if all are committed. If the broker refuses some
  // of them, the error names the first of these. Offsets that are not acknowledged within `limit`
  // may still be committed later, but before those of a later call. REQUIRES: no process reads as a
  // member of the group
  absl::Status Commit(absl::Span<const KafkaPlace> places) const;

 private:
  KafkaCluster(std::unique_ptr<KafkaClient> client, absl::Duration limit);
  int LimitMs() const { return static_cast<int>(absl::ToInt64Milliseconds(limit_)); }
  // The deadline of a call that asks several questions: together they take at most `limit`.
  int64_t DeadlineMs() const;
  // Asks for an offset by time for all partitions. `time_ms` may be one of librdkafka's special
  // values.
  absl::StatusOr<std::vector<int64_t>> AskOffsets(absl::Span<const KafkaPartition> partitions,
                                                  int64_t time_ms, int64_t deadline_ms) const;

  const std::unique_ptr<KafkaClient> client_;
  const absl::Duration limit_;
  std::string id_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_CLUSTER_H_
