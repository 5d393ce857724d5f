// A Block is the unit of shuffling and of provenance (ProvenanceRange in proto/hot.proto). Block b
// of a split covers the positions [b * block_rows, (b + 1) * block_rows), where positions count the
// good records of the split. Of these records, the block holds those that belong to the stream. It
// also holds the order in which the stream takes them.
//
// A block of a topic partition covers the offsets [index, end_offset). Each offset is a slot, which
// is empty or has a message with its lines. The shuffle permutes slots, not records, so that a gap
// or a bad record moves no other record, and the lines of a message stay together.
//
// A block, its order and its counts are the same in every generation of a run, however much of the
// block is consumed.

#ifndef SATRAP_DATA_LOADER_BATCH_BLOCK_H_
#define SATRAP_DATA_LOADER_BATCH_BLOCK_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "data_loader/parser/record_block.h"

namespace satrap {

// The place of a record in a block of a topic partition.
struct Position {
  uint32_t slot = 0;
  uint32_t line = 0;  // of the slot's message, from 0; bad and empty lines count, too
  auto operator<=>(const Position&) const = default;
};

struct Block {
  explicit Block(const RecordSchema& schema) : records(schema) {}
  uint32_t split = 0;
  uint64_t index = 0;
  // The number of lines that were read since the previous block with a record, or since the start
  // of the split. 0 in epochs and streams that do not count them. For a topic partition, only the
  // lines of the block's own offsets count, and empty_lines also counts empty messages.
  uint64_t bad_records = 0;
  uint64_t empty_lines = 0;
  RecordBlock records;
  std::vector<uint32_t> order;  // rows of `records`, in the order in which they are taken

  // Set only for topic partitions, like the members below.
  absl::optional<uint64_t> end_offset;
  // For each row in `order`, its place in the permuted order of slots. The places ascend.
  std::vector<Position> positions;
  // The offset of the last message, and XXH64 of its value. Absent if the block has no message.
  absl::optional<uint64_t> last_offset;
  uint64_t last_hash = 0;

  bool is_of_topic() const { return end_offset.has_value(); }
  // The number of units that provenance counts: slots for a topic partition, otherwise records.
  uint32_t size() const {
    return static_cast<uint32_t>(is_of_topic() ? *end_offset - index : order.size());
  }
};

// What is known about a split after all of it has been read.
struct SplitEnd {
  uint64_t end_block = 0;    // one more than the last block with a record, or 0
  uint64_t rows = 0;         // records of the stream
  uint64_t bad_records = 0;  // lines after the last block with a record
  uint64_t empty_lines = 0;
};

// The records at [from, to) in a block's order.
struct BlockRange {
  std::shared_ptr<const Block> block;
  uint32_t from = 0;
  uint32_t to = 0;
  // Only for a topic partition: the range consumes the slots from `begin` to `end`, including empty
  // ones. There is no record between `begin` and record `from`, and none between the last record
  // and `end`.
  Position begin = {};
  Position end = {};
  uint32_t size() const { return to - from; }
};

// The records at [from, to) of the range's block, with the empty slots that follow them. If the
// piece is the first of the range, it also has the empty slots before it. REQUIRES: range.from <=
// from < to <= range.to
BlockRange PieceOf(const BlockRange& range, uint32_t from, uint32_t to);

// The number of rows of a block if the stream is not shuffled; small, so that a block stays in the
// cache.
inline constexpr uint64_t kUnshuffledBlockRows = 8192;

// These two functions fill `block->order` with the block's rows. ShuffleBlock uses a permutation
// that is a function of (seed, epoch, split, block); KeepOrder uses the order of the file.
void ShuffleBlock(uint64_t seed, uint32_t epoch, Block* block);
void KeepOrder(Block* block);

// Returns the order in which the slots of a block are taken. The block covers `slots` offsets from
// `first` on, and its slots are counted from `first`. The order is ShuffleBlock's permutation, a
// function of (seed, epoch, split, first / shuffle_rows). If shuffle_rows is 0, the slots keep
// their order.
std::vector<uint32_t> SlotOrder(uint64_t seed, uint32_t epoch, uint32_t split, uint64_t first,
                                uint64_t shuffle_rows, uint32_t slots);
// Fills order and positions of a topic's block. `order` is the block's SlotOrder. places[r] is
// where row r comes from: its slot, counted from the block's first offset, and its line in that
// slot. REQUIRES: `places` is strictly ascending, with one element for each row
void OrderBySlots(absl::Span<const uint32_t> order, absl::Span<const Position> places,
                  Block* block);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BLOCK_H_
