// A BatchCutter queues the unconsumed records of blocks, with riders between them. A rider is
// provenance without records: for example the end of a split, or slots of a topic partition that
// hold no records. A batch takes records from the front, so it may end in the middle of a block,
// and a block may feed several batches. A rider is sent with the record before it, or with the next
// part if there is no such record.
//
// A block is kept in memory until its last record has gone into a batch; parts hold copies.
//
// Not thread-safe. Batch makers use it (batch_maker.h).

#ifndef SATRAP_DATA_LOADER_BATCH_BATCH_CUTTER_H_
#define SATRAP_DATA_LOADER_BATCH_BATCH_CUTTER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "data_loader/batch/block.h"
#include "data_loader/batch/block_reader.h"
#include "data_loader/batch/stream_spec.h"
#include "data_loader/engine/part.h"
#include "proto/hot.pb.h"

namespace satrap {

class BatchCutter {
 public:
  // `spec` must outlive the cutter.
  explicit BatchCutter(const StreamSpec& spec);

  // Queues those records of the block that are not consumed according to `consumed`, in the block's
  // order. Slots of a topic partition are queued with the records around them, or as a rider if no
  // record is left. Consumed records are counted in the spec's progress. FAILED_PRECONDITION,
  // saying why, if the block contradicts the ledger, because the data has changed since it was
  // consumed. The caller must add the file or the partition to the message.
  absl::Status Queue(std::shared_ptr<const Block> block, const SplitConsumption& consumed);
  void QueueRider(ProvenanceRange range);

  // The number of records in the queue.
  uint64_t rows() const { return rows_; }
  // Whether there are neither records nor riders in the queue.
  bool empty() const { return pending_.empty(); }
  // The number of consumed records that were left out, summed over all queued blocks.
  uint64_t skipped_rows() const { return skipped_rows_; }

  // Cuts the next batch: a global batch of records, or all records if there are fewer, and the
  // riders that follow them in the queue. `last` says that the batch is the last of its lane.
  // CutBatch (stream_spec.h) makes the parts of the batch. If the queue is empty, an ordered stream
  // gets parts without samples, and an unordered stream gets no parts.
  std::vector<Part> Cut(uint32_t epoch, bool last);

 private:
  // A range of records, or a rider if `records.block` is null.
  struct Pending {
    BlockRange records;
    ProvenanceRange rider;
  };
  // Queues a range, which for a topic partition may consist only of slots without records.
  absl::Status QueueRange(BlockRange range, const SplitConsumption& consumed);

  const StreamSpec& spec_;
  const uint64_t batch_size_;
  std::deque<Pending> pending_;
  uint64_t rows_ = 0;
  uint64_t skipped_rows_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BATCH_CUTTER_H_
