// Names of places in Kafka: a partition of a topic, and offsets in it.
//
// Plain values.

#ifndef SATRAP_COMMON_KAFKA_PARTITION_H_
#define SATRAP_COMMON_KAFKA_PARTITION_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace satrap {

struct KafkaPartition {
  std::string topic;
  int32_t partition = 0;

  // "clicks/3"
  std::string ToString() const { return absl::StrCat(topic, "/", partition); }
};

inline bool operator==(const KafkaPartition& a, const KafkaPartition& b) {
  return a.partition == b.partition && a.topic == b.topic;
}
inline bool operator<(const KafkaPartition& a, const KafkaPartition& b) {
  return std::tie(a.topic, a.partition) < std::tie(b.topic, b.partition);
}

// Identifies a message of a partition, by its offset and the hash of its value (Xxh64).
struct MessageMark {
  int64_t offset = 0;
  uint64_t hash = 0;
};

// Distinguishes a partition from a later one of the same name: by a message that the partition had
// or, if no message was seen, by its first offset at that time (-1: unknown).
struct PartitionAnchor {
  absl::optional<MessageMark> message;
  int64_t earliest = -1;
};

// A place in a partition; the message at `offset` is the next one to read.
struct KafkaPlace {
  KafkaPartition partition;
  int64_t offset = 0;
  absl::optional<PartitionAnchor> anchor =
      absl::nullopt;  // of an earlier reader, for PartitionReader
};

// Offsets [earliest, latest) that the broker has and a reader may see. `latest` is the partition's
// last stable offset: messages after the first open transaction are not counted.
struct KafkaOffsetRange {
  int64_t earliest = 0;
  int64_t latest = 0;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_PARTITION_H_
