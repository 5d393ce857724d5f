// A BatchCutter queues the records of blocks, less what is consumed, with riders between them: ends
// of splits, and slots of topic partitions without records. A batch takes from the front, so it may
// end in the middle of a block, and a block may feed several batches. A rider goes with the record
// before it, or with the next part if there is none.
//
// Blocks are held until their last record is cut; parts hold copies.
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

  // Queues those records of the block that `consumed` does not hold, in the block's order. Slots of
  // a topic partition are queued with the records around them, or as a rider if no record is left.
  // Records that are left out are counted in the spec's progress. FAILED_PRECONDITION, saying why,
  // if the block contradicts the ledger: the data has changed since it was consumed. The caller
  // names the file or the partition.
  absl::Status Queue(std::shared_ptr<const Block> block, const SplitConsumption& consumed);
  void QueueRider(ProvenanceRange range);

  // Records in the queue.
  uint64_t rows() const { return rows_; }
  // Whether there are neither records nor riders in the queue.
  bool empty() const { return pending_.empty(); }
  // Records of all queued blocks that were left out because they are consumed.
  uint64_t skipped_rows() const { return skipped_rows_; }

  // Cuts the next batch: a global batch of records, or all if there are fewer, with the riders
  // after them. `last` says that the batch is the last of its lane. CutBatch (stream_spec.h) makes
  // its parts: if the queue is empty, an ordered stream gets parts without samples, and an
  // unordered one gets no part.
  std::vector<Part> Cut(uint32_t epoch, bool last);

 private:
  // Records, or a rider if `records.block` is null.
  struct Pending {
    BlockRange records;
    ProvenanceRange rider;
  };
  // Queues records [from, to) of the block with the slots from `begin` to `end`.
  absl::Status QueueRange(BlockRange range, const SplitConsumption& consumed);

  const StreamSpec& spec_;
  const uint64_t batch_size_;
  std::deque<Pending> pending_;
  uint64_t rows_ = 0;
  uint64_t skipped_rows_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BATCH_CUTTER_H_
