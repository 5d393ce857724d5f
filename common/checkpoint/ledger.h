// A Ledger says which samples of the train stream are consumed: by epoch, split, block and the
// range within the block's permuted order (ProvenanceRange, proto/hot.proto). What is consumed is
// kept as whole splits, whole blocks and ranges, so a ledger's size depends on what is under way
// and not on what was read.
//
// A split is a piece of a file or a topic partition. Of a partition a block is named by its first
// offset, and places in it are slots with the line within the slot (consumed_split.h).
//
// Every rank collects the provenance of the parts it has released and hands it to rank 0 at each
// cut, which merges it (docs/consistency.md, "Cuts"). A loader skips what the ledger of its cut
// holds. A record that is consumed twice is an error here: the promise that the ledger keeps.
//
// A split is done when the range that tells its end was consumed, and as many records as it names,
// or, of a partition, all the offsets. An epoch that is closed is consumed whole, whatever splits
// it had.
//
// Add takes a microsecond or less, so that a rank can call it for each part that it releases.
//
// Thread-compatible: const methods may run at the same time.

#ifndef SATRAP_COMMON_CHECKPOINT_LEDGER_H_
#define SATRAP_COMMON_CHECKPOINT_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/consumed_split.h"
#include "common/checkpoint/intervals.h"
#include "proto/hot.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class Ledger {
 public:
  // Places in a block, offsets, and a partition's last message: consumed_split.h.
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
  // The same for equal ledgers, however they came about.
  LedgerState ToState() const;

  // Consumes a range. INTERNAL, with nothing changed, if a record of it is consumed already, if it
  // is out of its block, if it contradicts what the ledger knows of the block or the split, or if
  // the epoch is closed.
  absl::Status Add(uint32_t epoch, const ProvenanceRange& range);
  // Adds everything that `other` holds. INTERNAL as Add; the ledger is then useless.
  absl::Status Merge(const Ledger& other);
  // The error of Add(epoch, range) now, without its change. Whoever reads the records can name
  // their file.
  absl::Status Check(uint32_t epoch, const ProvenanceRange& range) const;
  // Keeps of epochs before `epoch` the totals only. REQUIRES: they are over
  void CloseEpochsBefore(uint32_t epoch);

  bool empty() const { return epochs_.empty(); }
  bool IsSplitDone(uint32_t epoch, uint32_t split) const;
  // Whether the range that tells the split's end is consumed.
  bool IsSplitEndConsumed(uint32_t epoch, uint32_t split) const;
  // Whether the first record or slot of the permuted order of the block that holds `block` is
  // consumed: with it, the block's counts of bad records and empty lines. Of a partition, `block`
  // is any offset.
  bool IsBlockBegun(uint32_t epoch, uint32_t split, uint64_t block) const;
  // What is consumed of a block: ascending, disjoint and not touching. A block that is consumed
  // whole gives one range. REQUIRES: `size` is the block's number of records, or of slots
  std::vector<Range> Consumed(uint32_t epoch, uint32_t split, uint64_t block, uint32_t size) const;
  // What is known of the records of a split that is not done.
  struct SplitRows {
    uint64_t consumed = 0;
    absl::optional<uint64_t> all;  // of a file, if the split's end is consumed
  };
  SplitRows RowsOf(uint32_t epoch, uint32_t split) const;
  Totals OfEpoch(uint32_t epoch) const;
  Totals OfAll() const;

  // For topic partitions; offsets are [first, end). Nothing is known of a split that is done.
  // The blocks of which something is consumed and not all, ascending.
  std::vector<OpenBlock> OpenBlocks(uint32_t epoch, uint32_t split) const;
  // What whole blocks hold from offset `from` on: ascending, not touching.
  std::vector<OpenBlock> DoneBlocks(uint32_t epoch, uint32_t split, uint64_t from) const;
  // The first offset from `start` on that no whole block holds: where reading begins, and what a
  // consumer group commits. REQUIRES: the split is not done
  uint64_t ContiguousEnd(uint32_t epoch, uint32_t split, uint64_t start) const;
  // The last message of the highest whole block that has one.
  absl::optional<LastMessage> LastMessageOf(uint32_t epoch, uint32_t split) const;

  // Stretches of consumed records that come after something unconsumed of their split, in all
  // splits that are not done. The size of a ledger follows it. Ranges and whole blocks that touch
  // are one stretch, and the first of a split counts as its contiguous beginning, so there are
  // never more than open blocks and parts in flight.
  size_t PiecesBehind() const;

 private:
  // Never without a split, unless it is closed.
  struct Epoch {
    Totals totals;
    Intervals done_splits;
    std::map<uint32_t, ConsumedSplit> splits;
    bool is_closed() const { return done_splits.empty() && splits.empty(); }
  };

  // Null if nothing of it is consumed, or all.
  const ConsumedSplit* FindSplit(uint32_t epoch, uint32_t split) const;
  // The reason for which Add refuses the range; empty if it does not.
  std::string Refusal(uint32_t epoch, const ProvenanceRange& range) const;
  static absl::Status MergeEpoch(uint32_t number, const Epoch& theirs, Epoch* epoch);
  // Notes that the split is done if all its records are consumed.
  static void FinishSplit(uint32_t split, Epoch* epoch);
  static absl::Status ReadEpoch(const EpochLedger& state, Epoch* epoch);

  std::map<uint32_t, Epoch> epochs_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_LEDGER_H_
