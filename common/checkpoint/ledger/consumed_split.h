// A ConsumedSplit says what is consumed of one split in one epoch: whole blocks, and ranges of the
// other blocks (ledger.h). The rules are those of ProvenanceRange (proto/hot.proto).
//
// A split is a piece of a file or a topic partition. Block b of a file is the interval [b, b + 1),
// and a block of a partition is the interval of its offsets; blocks never overlap. Ranges begin and
// end at places. In a block of a file a place is a record. In a block of a partition a place is a
// slot, that is, an offset, together with a line of that slot.
//
// Thread-compatible.

#ifndef SATRAP_COMMON_CHECKPOINT_LEDGER_CONSUMED_SPLIT_H_
#define SATRAP_COMMON_CHECKPOINT_LEDGER_CONSUMED_SPLIT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/ledger/intervals.h"
#include "proto/hot.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class ConsumedSplit {
 public:
  // Records [from, to) of a block's permuted order. For a partition, the range begins at line
  // from_line of slot `from` and ends before line to_line of slot `to`.
  struct Range {
    uint32_t from;
    uint32_t to;
    uint32_t from_line = 0;
    uint32_t to_line = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  // Offsets [first, end).
  struct Offsets {
    uint64_t first;
    uint64_t end;
    friend bool operator==(const Offsets&, const Offsets&) = default;
  };
  struct LastMessage {
    uint64_t offset;
    uint64_t hash;  // XXH64 of its value
    friend bool operator==(const LastMessage&, const LastMessage&) = default;
  };

  // Errors say what is wrong; the caller names the split.
  static absl::StatusOr<ConsumedSplit> FromState(const SplitLedger& state);
  // Writes all but the split's number.
  void ToState(SplitLedger* state) const;

  // Why the range cannot be added; empty if it can.
  std::string Refusal(const ProvenanceRange& range) const;
  // REQUIRES: Refusal(range).empty()
  void Add(const ProvenanceRange& range);
  // Adds everything that `other` holds. If that is impossible, returns the reason; this object must
  // then no longer be used.
  std::string Merge(const ConsumedSplit& other);

  // Whether all records (of a partition, all offsets) and the end of the split are consumed.
  bool is_done() const;
  bool has_end() const { return split_rows_.has_value() || bounds_.has_value(); }
  uint64_t rows() const { return rows_; }
  // The number of all records of the split; absent unless it is a file whose end is consumed.
  absl::optional<uint64_t> split_rows() const { return split_rows_; }
  // These do the same as the functions of Ledger with the same names (ledger.h).
  bool IsBlockBegun(uint64_t block) const;
  std::vector<Range> Consumed(uint64_t block, uint32_t size) const;
  std::vector<Offsets> OpenBlocks() const;
  std::vector<Offsets> DoneBlocks(uint64_t from) const;
  uint64_t ContiguousEnd(uint64_t start) const { return done_blocks_.EndFrom(start); }
  absl::optional<LastMessage> last_message() const { return last_message_; }
  size_t PiecesBehind() const;

 private:
  struct Block {
    uint64_t end = 0;   // one more than the last of its numbers
    uint32_t size = 0;  // records, or slots
    std::vector<Range> consumed;
    absl::optional<LastMessage> last_message;
  };
  std::string RefusalOfEnd(const ProvenanceRange& end) const;
  std::string RefusalOfBlock(const ProvenanceRange& range) const;
  std::string MergeWholeBlocks(const ConsumedSplit& other);
  absl::Status ReadBlock(const BlockLedger& state);
  // Checks that the number of records agrees with the ranges and blocks of the state, and that the
  // split is neither whole (it should be among the done splits) nor untouched.
  absl::Status CheckRows() const;
  // The number of records in the ranges of a file's open blocks. For a partition this number is not
  // known, and the result is 0.
  uint64_t RowsOfRanges() const;

  bool is_topic_ = false;  // a topic partition
  uint64_t rows_ = 0;
  absl::optional<uint64_t> split_rows_;
  absl::optional<Offsets> bounds_;  // of a partition; absent until its end is consumed
  Intervals done_blocks_;
  std::map<uint64_t, Block> blocks_;          // blocks that are consumed in part
  absl::optional<LastMessage> last_message_;  // the last one in whole blocks
};

// The range's name in errors: "records [0, 5) of block 2".
std::string NameOf(const ProvenanceRange& range);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_LEDGER_CONSUMED_SPLIT_H_
