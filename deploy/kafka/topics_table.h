// The table that `satrap topics` prints: topic partitions, what the broker has, and how far
// somebody has come.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_KAFKA_TOPICS_TABLE_H_
#define SATRAP_DEPLOY_KAFKA_TOPICS_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/kafka/partition.h"
#include "proto/control.pb.h"
#include "proto/kafka.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class KafkaCluster;

struct TopicsRow {
  KafkaPartition partition;
  KafkaOffsetRange range;             // of the broker
  absl::optional<int64_t> until;      // where a run stops reading; absent: nowhere
  absl::optional<int64_t> in_cut;     // the newest cut of a run holds everything before it
  absl::optional<int64_t> committed;  // by the group
  absl::optional<int64_t> read;       // the first offset that the run has not read yet
};

// Which columns there are besides partitions and their offsets.
struct TopicsColumns {
  bool until = false;
  bool in_cut = false;
  bool committed = false;
  bool read = false;
};

// A line of names, and one for each row. With in_cut, or else with committed, there is the lag:
// what the broker has behind that offset, or, if there is none, all that it has; up to `until`.
std::string TopicsTableText(const std::vector<TopicsRow>& rows, const TopicsColumns& columns);

// The lags of all rows.
int64_t LagOf(const std::vector<TopicsRow>& rows);

// Asks for the offsets of `partitions`, and for what the group has committed if `group` says so.
// Errors as KafkaCluster.
absl::StatusOr<std::vector<TopicsRow>> AskTopics(const KafkaCluster& cluster,
                                                 const std::vector<KafkaPartition>& partitions,
                                                 bool group);

// A stream of a run that reads topics.
struct StreamOfRun {
  StreamTopics topics;  // of the run's log
  // The train stream's: the first offset of each partition that the newest cut does not hold. Empty
  // for other streams, which no cut holds.
  std::vector<uint64_t> in_cut;
  absl::optional<TopicsStatus> status;  // the train stream's, while the run trains
};

// Asks the cluster of `kafka` for the stream's partitions. Errors as KafkaCluster;
// FAILED_PRECONDITION if it is another cluster than the run's.
absl::StatusOr<std::string> StreamText(const KafkaConfig& kafka, const StreamOfRun& stream);
// The same, when the broker has answered `asked`, a row for each partition.
std::string StreamText(const StreamOfRun& stream, const std::string& group,
                       std::vector<TopicsRow> asked);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_KAFKA_TOPICS_TABLE_H_
