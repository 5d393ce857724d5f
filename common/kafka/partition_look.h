// Reads single messages of topic partitions, and asks for their offsets, to check whether these are
// still the same partitions (partition_guard.h).
//
// Partitions do not wait for each other: if a broker is down, is slow or refuses, partitions that
// other brokers lead are still answered.
//
// Thread-safe: the functions depend only on their arguments. Each function says how long it may
// block.

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

// A question to the brokers: which is the first message at or after an offset?
struct PartitionQuestion {
  KafkaPartition partition;
  int64_t offset = 0;
  bool asks_earliest = false;  // for the partition's first offset, too
  bool asks_latest = false;    // whether the partition ends at or before `offset`
};

// What a look has found out about one partition.
struct PartitionLook {
  absl::optional<MessageMark> first;  // the first message at or after the offset that was asked for
  int64_t earliest = -1;              // the partition's first offset; -1: not asked
  int64_t latest = -1;  // the partition's end; -1: not asked, or known to be after `first`
};

// Asks all questions at once. Calls `found` with the number of a question and its look as soon as
// the brokers have answered the whole question, at most once for each. Returns when all questions
// are answered, when `limit_ms` have passed, or when `stop` returns true; a query that is in
// progress then may take up to a second longer. If an error occurs that waiting cannot cure, the
// answer is a look without a message; the partition's reader will meet the error, too. REQUIRES: no
// two questions have the same partition; `client` reads nothing else
void LookAtPartitions(KafkaClient* client, const std::vector<PartitionQuestion>& questions,
                      int64_t limit_ms, const std::function<bool()>& stop,
                      const std::function<void(size_t, const PartitionLook&)>& found);

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_PARTITION_LOOK_H_
