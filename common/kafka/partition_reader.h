// A PartitionReader reads a fixed set of partitions side by side, each from an offset that the
// caller gives and through a queue of its own. If the messages of a partition are not read, they
// fill its share of queue_bytes (at least 64 KiB, and one answer of the broker on top). The
// partition then waits without holding up the others.
//
// Every message that the broker has and a reader may see is given once, in the order of offsets.
// Offsets without a message (compaction, aborted transactions, the marks of transactions) show as
// gaps: every offset below next_offset() was given or holds no message. At the end of a partition
// this includes the offsets after its last message. An offset that does not exceed the one before
// it is an error. Offsets that the broker no longer has are an error, too, never a silent jump.
//
// A topic that is deleted and made anew while it is read is an error (partition_guard.h), even if
// its offsets continue without a gap.
//
// If a broker becomes unreachable, the reader warns once and waits for broker_wait_seconds. A
// thread of the reader asks for the ends of the partitions every second; the answers show the lag,
// and that the broker is there. While a queue that is being read runs low, the thread asks every 20
// ms: otherwise librdkafka 2.0.2 would notice up to a second late that a full queue has room again.
//
// Threads: Read and next_offset of one partition belong to one thread at a time; different threads
// may read different partitions. Everything else is thread-safe. Only these block: Wait; the
// destructor, as long as KafkaClient's; and, for at most 10 s, a Read of an offset that the broker
// refuses. (Read then asks which offsets the broker has.) Batches must be destroyed before the
// reader.
//
// message_source.h documents the methods.
//
// There is no pause, resume or seek, because librdkafka 2.0.2 would lose messages if they were
// combined with batches. To add partitions, or to skip lost offsets of a partition, make another
// reader.

#ifndef SATRAP_COMMON_KAFKA_PARTITION_READER_H_
#define SATRAP_COMMON_KAFKA_PARTITION_READER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/kafka/broker_outage.h"
#include "common/kafka/message_batch.h"
#include "common/kafka/message_source.h"
#include "common/kafka/partition.h"
#include "common/kafka/partition_guard.h"
#include "common/log/log.h"
#include "common/thread/mutex.h"
#include "proto/kafka.pb.h"

namespace satrap {

class KafkaClient;
class PartitionWatch;

class PartitionReader final : public MessageSource {
 public:
  // Begins to fetch from each place. The places are known to exist (KafkaCluster); partition i of
  // the reader is that of places[i]. Readers that share `outage` warn only once about an
  // unreachable broker; null: this reader warns for itself. If a place has an anchor, its messages
  // are given only after the anchor was compared, however long the brokers take; UNAVAILABLE after
  // broker_wait_seconds. `keep`, if not null, receives anchors for a later reader
  // (partition_guard.h). Errors are those of ResolveKafkaSettings. REQUIRES: no partition twice
  static absl::StatusOr<std::unique_ptr<PartitionReader>> Open(
      const KafkaConfig& config, std::vector<KafkaPlace> places, Logger logger,
      std::shared_ptr<BrokerOutage> outage = nullptr, AnchorSink keep = nullptr);
  ~PartitionReader() override;

  size_t partitions() const { return partitions_.size(); }
  const KafkaPartition& partition(size_t index) const;

  absl::Status Read(size_t index, size_t max_messages, MessageBatch* batch) override;
  int64_t next_offset(size_t index) const override;
  bool at_end(size_t index) const override;
  absl::optional<Lost> lost(size_t index) const override;
  bool Wait(absl::Span<const size_t> indices, absl::Duration limit) override;
  int64_t end_offset(size_t index) const override;

  // Makes the current Wait and all later ones return almost at once.
  void Stop();

  // Whether the reader would by now detect that the topic was made anew. True from about a second
  // after Open.
  bool is_guarded(size_t index) const;

  // The number of messages that have arrived but are not read yet.
  size_t queued_messages(size_t index) const;

 private:
  struct Partition;
  PartitionReader(const KafkaConfig& config, Logger logger);
  absl::Status Assign(std::vector<KafkaPlace> places, std::shared_ptr<BrokerOutage> outage,
                      AnchorSink keep);
  absl::Status Take(Partition* partition, rd_kafka_message_s* message, MessageBatch* batch);
  absl::Status Fail(Partition* partition, const rd_kafka_message_s& message);
  absl::Status FindLost(Partition* partition);
  void RecordDemand(Partition* partition, size_t messages, size_t bytes);

  const KafkaConfig config_;
  const Logger logger_;
  std::unique_ptr<KafkaClient> client_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::unique_ptr<PartitionGuard> guard_;
  std::unique_ptr<PartitionWatch> watch_;
  mutable Mutex mutex_;
  CondVar arrived_;
  uint64_t arrivals_ GUARDED_BY(mutex_) = 0;
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_PARTITION_READER_H_
