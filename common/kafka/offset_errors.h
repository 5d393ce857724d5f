// The errors of a reader that meets an unexpected offset.
//
// Pure functions.

#ifndef SATRAP_COMMON_KAFKA_OFFSET_ERRORS_H_
#define SATRAP_COMMON_KAFKA_OFFSET_ERRORS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/kafka/message_source.h"
#include "common/kafka/partition.h"

namespace satrap {

// INTERNAL if `offset` is before `wanted`. Then the client is at fault, not the data, so another
// client will read the data correctly.
absl::Status CheckOffset(const KafkaPartition& partition, int64_t offset, int64_t wanted);

// The error to report if a broker refused offset `wanted` and then answered that it has the offsets
// `found`. OUT_OF_RANGE, and `*lost` is set, if `wanted` is not in `found`. UNAVAILABLE if it is:
// the two answers come from different leaders, and nothing is lost.
absl::Status OffsetRefused(const KafkaPartition& partition, int64_t wanted,
                           const KafkaOffsetRange& found,
                           absl::optional<MessageSource::Lost>* lost);

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_OFFSET_ERRORS_H_
