// A Ledger says which samples of the train stream are consumed: by epoch, split, block and the
// range within the block's permuted order (ProvenanceRange, proto/hot.proto). It stores whole
// splits, whole blocks and ranges, so its size depends on the amount of data in progress, not on
// the amount that was read.
//
// A split is a piece of a file or a topic partition. A block of a partition is named by its first
// offset, and places in it are slots with the line within the slot (consumed_split.h).
//
// Every rank collects the provenance of the parts that it has released. At each cut it hands this
// to rank 0, which merges it (docs/consistency.md, "Cuts"). A loader skips the samples that the
// ledger of its cut holds. Consuming a record twice is an error: the ledger is there to rule it
// out.
//
// A split of a file is done when the range that ends it is consumed and the number of consumed
// records is the one that this range states. A topic partition is done when the range that ends it
// and all its offsets are consumed. A closed epoch is consumed whole, whatever splits it had.
//
// Add takes a microsecond or less, so that a rank can call it for each part that it releases.
//
// Thread-compatible: const methods may run at the same time.

#ifndef SATRAP_COMMON_CHECKPOINT_LEDGER_LEDGER_H_
#define SATRAP_COMMON_CHECKPOINT_LEDGER_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/ledger/consumed_split.h"
#include "common/checkpoint/ledger/intervals.h"
#include "proto/hot.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class Ledger {
 public:
  // consumed_split.h explains these types: places in a block, offsets, and the last message of a
  // partition.
  using Range = ConsumedSplit::Range;
  using OpenBlock = ConsumedSplit::Offsets;
  using LastMessage = ConsumedSplit::LastMessage;
  struct Totals {
    uint64_t rows = 0;
    uint64_t bad_records = 0;
    uint64_t empty_lines = 0;
  };

  Ledger() = default;
  // DATA_LOSS if the state contradicts itself or is not as ToState makes it: ranges out of order,
  // more rows than a block has, a split that is whole but not among the done ones.
  static absl::StatusOr<Ledger> FromState(const LedgerState& state);
  // Equal ledgers give equal states, in whatever order their ranges were added.
  LedgerState ToState() const;

  // Consumes a range. INTERNAL, with nothing changed, if a record of the range is consumed already,
  // if the range is not within its block, if it contradicts what the ledger knows of the block or
  // the split, or if the epoch is closed.
  absl::Status Add(uint32_t epoch, const ProvenanceRange& range);
  // Adds everything that `other` holds. Fails with INTERNAL where Add would; the ledger must then
  // no longer be used.
  absl::Status Merge(const Ledger& other);
  // The error that Add(epoch, range) would return. Changes nothing. For a caller that has read the
  // records itself, and so can name their file in its own error.
  absl::Status Check(uint32_t epoch, const ProvenanceRange& range) const;
  // Keeps only the totals of the epochs before `epoch`. REQUIRES: these epochs are over
  void CloseEpochsBefore(uint32_t epoch);

  bool empty() const { return epochs_.empty(); }
  bool IsSplitDone(uint32_t epoch, uint32_t split) const;
  // Whether the range that ends the split is consumed.
  bool IsSplitEndConsumed(uint32_t epoch, uint32_t split) const;
  // Whether a block is begun: whether the first record or slot of its permuted order is consumed.
  // The block's counts of bad records and empty lines are consumed with that record or slot.
  // `block` names the block; for a partition it may be any offset in the block.
  bool IsBlockBegun(uint32_t epoch, uint32_t split, uint64_t block) const;
  // The consumed ranges of a block: ascending, disjoint and not touching. A block that is consumed
  // whole gives one range. REQUIRES: `size` is the block's number of records, or of slots
  std::vector<Range> Consumed(uint32_t epoch, uint32_t split, uint64_t block, uint32_t size) const;
  // What is known of the records of a split that is not done.
  struct SplitRows {
    uint64_t consumed = 0;
    absl::optional<uint64_t> all;  // for a file whose end is consumed
  };
  SplitRows RowsOf(uint32_t epoch, uint32_t split) const;
  Totals OfEpoch(uint32_t epoch) const;
  Totals OfAll() const;

  // This function and the next three are for topic partitions. Offsets are intervals [first, end).
  // Nothing is known of a split that is done.
  //
  // OpenBlocks returns the blocks of which only a part is consumed, ascending.
  std::vector<OpenBlock> OpenBlocks(uint32_t epoch, uint32_t split) const;
  // The intervals of offsets, from `from` on, that are covered by whole blocks: ascending, not
  // touching.
  std::vector<OpenBlock> DoneBlocks(uint32_t epoch, uint32_t split, uint64_t from) const;
  // The first offset, at or after `start`, that is not covered by a whole block. Reading begins at
  // this offset, and a consumer group commits it. REQUIRES: the split is not done
  uint64_t ContiguousEnd(uint32_t epoch, uint32_t split, uint64_t start) const;
  // The last message of the highest whole block that has one.
  absl::optional<LastMessage> LastMessageOf(uint32_t epoch, uint32_t split) const;

  // Counts the stretches of consumed records that follow unconsumed records of the same split, in
  // all splits that are not done. The size of a ledger depends on this number. Ranges and whole
  // blocks that touch form one stretch. A split's first stretch is not counted, because it is
  // assumed to be the split's contiguous beginning. So the result is never more than the number of
  // open blocks and parts in flight.
  size_t PiecesBehind() const;

 private:
  // Has at least one split, unless it is closed.
  struct Epoch {
    Totals totals;
    Intervals done_splits;
    std::map<uint32_t, ConsumedSplit> splits;
    bool is_closed() const { return done_splits.empty() && splits.empty(); }
  };

  // Null if nothing of the split is consumed, or all of it.
  const ConsumedSplit* FindSplit(uint32_t epoch, uint32_t split) const;
  // The reason why Add refuses the range; empty if it does not.
  std::string Refusal(uint32_t epoch, const ProvenanceRange& range) const;
  static absl::Status MergeEpoch(uint32_t number, const Epoch& theirs, Epoch* epoch);
  // Notes that the split is done if all its records are consumed.
  static void FinishSplit(uint32_t split, Epoch* epoch);
  static absl::Status ReadEpoch(const EpochLedger& state, Epoch* epoch);

  std::map<uint32_t, Epoch> epochs_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_LEDGER_LEDGER_H_
