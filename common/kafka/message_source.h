// A MessageSource gives the messages of a fixed set of topic partitions. When it is made, it is
// given the offset at which reading begins in each partition. PartitionReader reads from brokers;
// tests use other implementations.
//
// Every message is given once, in the order of offsets. Offsets without a message show as gaps:
// every offset below next_offset() was given or holds no message.
//
// Threads: as for PartitionReader (partition_reader.h).

#ifndef SATRAP_COMMON_KAFKA_MESSAGE_SOURCE_H_
#define SATRAP_COMMON_KAFKA_MESSAGE_SOURCE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/kafka/message_batch.h"

namespace satrap {

class MessageSource {
 public:
  virtual ~MessageSource() = default;

  // Clears `batch` and moves into it up to `max_messages` messages that have arrived, perhaps none.
  // An error names the partition and the offsets concerned, and every later call returns it again:
  //   OUT_OF_RANGE         the broker no longer has the next offset: lost() says which offsets
  //   NOT_FOUND            the topic or the partition was deleted
  //   FAILED_PRECONDITION  the topic was deleted and made anew
  //   DATA_LOSS            a message is damaged
  //   INTERNAL             the client gave a message twice; a new client will not
  //   PERMISSION_DENIED the login has no right to read the partition
  //   UNAVAILABLE          the broker was unreachable for broker_wait_seconds, or it refused an
  //                        offset that it has
  // REQUIRES: max_messages > 0
  virtual absl::Status Read(size_t index, size_t max_messages, MessageBatch* batch) = 0;

  // The lowest offset of which it is not yet known whether a message is there.
  virtual int64_t next_offset(size_t index) const = 0;
  // Whether next_offset was the end of the partition when the broker was last asked for messages.
  virtual bool at_end(size_t index) const = 0;
  // After OUT_OF_RANGE: messages at offsets [wanted, found) can no longer be read. `found` is less
  // than `wanted` if the partition ends before `wanted`, as after the loss of its log.
  struct Lost {
    int64_t wanted = 0;
    int64_t found = 0;
  };
  virtual absl::optional<Lost> lost(size_t index) const = 0;

  // Waits until Read of one of `indices` would return messages or an error. False if `limit`
  // passed.
  virtual bool Wait(absl::Span<const size_t> indices, absl::Duration limit) = 0;

  // The partition's end as the broker last reported it; -1 before its first report. At most about a
  // second old while the broker answers. Messages after it cannot be read yet.
  virtual int64_t end_offset(size_t index) const = 0;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_MESSAGE_SOURCE_H_
