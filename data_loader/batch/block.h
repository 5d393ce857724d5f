// A Block is the unit of shuffling and of provenance (ProvenanceRange in proto/hot.proto). Block b
// of a split covers the records at positions [b * block_rows, (b + 1) * block_rows), where a
// position counts the good records of the split. It holds those of them that belong to the stream,
// and the order in which the stream takes them.
//
// A block of a topic partition covers the offsets [index, end_offset). Each offset is a slot: a
// message with its lines, or nothing. The shuffle permutes slots, so that a gap or a bad record
// shifts no other record, and the lines of a slot stay together.
//
// A block, its order and its counts are the same in every generation of a run, no matter how much
// of the block is consumed.

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
  // Lines met since the previous block that holds a record, or since the start of the split. 0 in
  // epochs and streams that do not count them. For a topic partition, lines at the block's own
  // offsets; there empty_lines counts empty messages, too.
  uint64_t bad_records = 0;
  uint64_t empty_lines = 0;
  RecordBlock records;
  std::vector<uint32_t> order;  // rows of `records`, in the order in which they are taken

  // Set for topic partitions only.
  absl::optional<uint64_t> end_offset;
  // For each row in `order`, its place in the permuted order of slots. Ascending.
  std::vector<Position> positions;
  // Offset of the last message, and XXH64 of its value. Absent if no offset has a message.
  absl::optional<uint64_t> last_offset;
  uint64_t last_hash = 0;

  bool is_of_topic() const { return end_offset.has_value(); }
  // What provenance counts: slots of a topic partition, else records.
  uint32_t size() const {
    return static_cast<uint32_t>(is_of_topic() ? *end_offset - index : order.size());
  }
};

// What is known of a split once all of it has been read.
struct SplitEnd {
  uint64_t end_block = 0;    // one more than the last block that holds a record, or 0
  uint64_t rows = 0;         // records of the stream
  uint64_t bad_records = 0;  // lines met after the last block that holds a record
  uint64_t empty_lines = 0;
};

// The records [from, to) of a block's order.
struct BlockRange {
  std::shared_ptr<const Block> block;
  uint32_t from = 0;
  uint32_t to = 0;
  // For a topic partition: the range consumes the slots from `begin` to `end`, including those
  // without records. No record lies between `begin` and record `from`, nor between the last one and
  // `end`.
  Position begin = {};
  Position end = {};
  uint32_t size() const { return to - from; }
};

// The records [from, to) of the range's block, with the empty slots after them. The first piece of
// the range also gets the empty slots before it. REQUIRES: range.from <= from < to <= range.to
BlockRange PieceOf(const BlockRange& range, uint32_t from, uint32_t to);

// Rows of a block in streams that are not shuffled: few, so that a block stays in the cache.
inline constexpr uint64_t kUnshuffledBlockRows = 8192;

// Both fill `block->order` with the block's rows: ShuffleBlock with a permutation that is a
// function of (seed, epoch, split, block), KeepOrder in the order of the file.
void ShuffleBlock(uint64_t seed, uint32_t epoch, Block* block);
void KeepOrder(Block* block);

// The slots of a block that covers `slots` offsets from `first` on, in the order in which they are
// taken. Slots count from `first`. The order is ShuffleBlock's permutation, a function of (seed,
// epoch, split, first / shuffle_rows). If shuffle_rows is 0, the slots keep their order.
std::vector<uint32_t> SlotOrder(uint64_t seed, uint32_t epoch, uint32_t split, uint64_t first,
                                uint64_t shuffle_rows, uint32_t slots);
// Fills order and positions of a topic's block. `order` is its SlotOrder, and places[r] says where
// row r comes from: its slot, counted from the block's first offset, and the line there.
// REQUIRES: `places` ascends strictly, one for each row
void OrderBySlots(absl::Span<const uint32_t> order, absl::Span<const Position> places,
                  Block* block);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BLOCK_H_
