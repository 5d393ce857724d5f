// The table that `satrap topics` prints: topic partitions, what the broker has, and how far a run
// or a consumer group has come.
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
  KafkaOffsetRange range;             // offsets that the broker has
  absl::optional<int64_t> until;      // where a run stops reading; absent: it does not stop
  absl::optional<int64_t> in_cut;     // the newest cut of a run holds everything before it
  absl::optional<int64_t> committed;  // by the consumer group
  absl::optional<int64_t> read;       // the first offset that the run has not read yet
};

// The columns besides partitions and their offsets.
struct TopicsColumns {
  bool until = false;
  bool in_cut = false;
  bool committed = false;
  bool read = false;
};

// A line of headings, and a line for each row. With in_cut, or else with committed, there is a
// column for the lag: messages that the broker has from that offset on, or all messages if the row
// has no such offset, up to `until`.
std::string TopicsTableText(const std::vector<TopicsRow>& rows, const TopicsColumns& columns);

// The sum of the lags of all rows.
int64_t LagOf(const std::vector<TopicsRow>& rows);

// Asks for the offsets of `partitions` and, if `group` is true, for those that the consumer group
// has committed. Errors as KafkaCluster.
absl::StatusOr<std::vector<TopicsRow>> AskTopics(const KafkaCluster& cluster,
                                                 const std::vector<KafkaPartition>& partitions,
                                                 bool group);

// A stream of a run that reads topics.
struct StreamOfRun {
  StreamTopics topics;  // from the run's log
  // For the train stream, the first offset of each partition that the newest cut does not hold.
  // Empty for other streams, which are not in cuts.
  std::vector<uint64_t> in_cut;
  absl::optional<TopicsStatus> status;  // that of the train stream, while the run trains
};

// Asks the cluster of `kafka` for the stream's partitions. Errors as KafkaCluster;
// FAILED_PRECONDITION if it is another cluster than the run's.
absl::StatusOr<std::string> StreamText(const KafkaConfig& kafka, const StreamOfRun& stream);
// The same text from `asked`, the broker's answer with a row for each partition.
std::string StreamText(const StreamOfRun& stream, const std::string& group,
                       std::vector<TopicsRow> asked);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_KAFKA_TOPICS_TABLE_H_
