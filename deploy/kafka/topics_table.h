// The table that `satrap topics` prints: topic partitions, the offsets that the broker has, and how
// far a run or a consumer group has read.
//
// Thread-safe: the functions depend only on their arguments.

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
  absl::optional<int64_t> in_cut;     // the run's newest cut contains all before this
  absl::optional<int64_t> committed;  // by the consumer group
  absl::optional<int64_t> read;       // the first offset that the run has not read yet
};

// Which optional columns the table has. It always shows the partitions and the broker's offsets.
struct TopicsColumns {
  bool until = false;
  bool in_cut = false;
  bool committed = false;
  bool read = false;
};

// A line of headings, and a line for each row. If in_cut or committed is shown, the lag is shown,
// too. It is the number of messages that the broker has before `until`, counted from the row's
// in_cut. A row without in_cut counts from its committed offset, and a row without both from the
// broker's first message.
std::string TopicsTableText(const std::vector<TopicsRow>& rows, const TopicsColumns& columns);

// The sum of the lags of all rows.
int64_t LagOf(const std::vector<TopicsRow>& rows);

// Asks the cluster for the offsets of `partitions` and, if `group` is true, for the offsets that
// the consumer group has committed. Errors are those of KafkaCluster.
absl::StatusOr<std::vector<TopicsRow>> AskTopics(const KafkaCluster& cluster,
                                                 const std::vector<KafkaPartition>& partitions,
                                                 bool group);

// A stream of a run that reads topics.
struct StreamOfRun {
  StreamTopics topics;  // from the run's log
  // For the train stream: for each partition, the first offset that is not in the newest cut. Empty
  // for other streams, because cuts do not contain them.
  std::vector<uint64_t> in_cut;
  absl::optional<TopicsStatus> status;  // that of the train stream, while the run trains
};

// Asks the cluster of `kafka` for the stream's partitions, and formats the table. Errors are those
// of KafkaCluster; FAILED_PRECONDITION if that is not the run's cluster.
absl::StatusOr<std::string> StreamText(const KafkaConfig& kafka, const StreamOfRun& stream);
// Like StreamText above, but made from `asked`: the broker's answer, with a row for each partition.
std::string StreamText(const StreamOfRun& stream, const std::string& group,
                       std::vector<TopicsRow> asked);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_KAFKA_TOPICS_TABLE_H_
