// Reads single messages of topic partitions, and asks for their offsets, to see whether they are
// still the partitions that they were (partition_guard.h).
//
// Partitions do not wait for each other: a broker that is down, slow or refuses keeps the
// partitions that other brokers lead from no answer.
//
// Thread-safe: functions of their arguments. They block as long as they say.

#ifndef SATRAP_COMMON_KAFKA_PARTITION_LOOK_H_
#define SATRAP_COMMON_KAFKA_PARTITION_LOOK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/optional.h"
#include "common/kafka/partition.h"

namespace satrap {

class KafkaClient;

// One question to the brokers: which is the first message at or after an offset?
struct PartitionQuestion {
  KafkaPartition partition;
  int64_t offset = 0;
  bool asks_earliest = false;  // for the partition's first offset, too
  bool asks_latest = false;    // whether the partition ends at or before `offset`
};

// What a look has found of one partition.
struct PartitionLook {
  absl::optional<MessageMark> first;  // the first message at or after the offset that was asked for
  int64_t earliest = -1;              // the partition's first offset; -1: not asked
  int64_t latest = -1;  // where it ends; -1: not asked, or after `first`, which shows as much
};

// Asks all questions at once. Calls `found` with the number of a question and its look as soon as
// the brokers have answered all of it, at most once each. Returns when all are answered, `limit_ms`
// have passed or `stop` returns true; a query that is under way may add a second. An error that
// waiting does not help against is an answer without a message, because whoever reads the partition
// meets it, too. `client` reads nothing else. REQUIRES: no partition twice
void LookAtPartitions(KafkaClient* client, const std::vector<PartitionQuestion>& questions,
                      int64_t limit_ms, const std::function<bool()>& stop,
                      const std::function<void(size_t, const PartitionLook&)>& found);

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_PARTITION_LOOK_H_
