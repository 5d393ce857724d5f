// A Block is the unit of shuffling and of provenance (ProvenanceRange in proto/hot.proto). Block b
// of a split covers the records at positions [b * block_rows, (b + 1) * block_rows), where a
// position counts the good records of the split. It holds those of them that belong to the stream,
// and the order in which the stream takes them.
//
// A block, its order and its counts are the same in every generation of a run, whatever is consumed
// of them.

#ifndef SATRAP_DATA_LOADER_BATCH_BLOCK_H_
#define SATRAP_DATA_LOADER_BATCH_BLOCK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "data_loader/parser/record_block.h"

namespace satrap {

struct Block {
  explicit Block(const RecordSchema& schema) : records(schema) {}
  uint32_t split = 0;
  uint64_t index = 0;
  // Lines met since the block before it that holds a record, or since the split's begin. 0 in
  // epochs and streams that do not count them.
  uint64_t bad_records = 0;
  uint64_t empty_lines = 0;
  RecordBlock records;
  std::vector<uint32_t> order;  // rows of `records`, in the order in which they are taken
};

// What is known of a split when it has been read.
struct SplitEnd {
  uint64_t end_block = 0;    // one more than the last block that holds a record, or 0
  uint64_t rows = 0;         // records of the stream
  uint64_t bad_records = 0;  // lines met after the last block that holds a record
  uint64_t empty_lines = 0;
};

// Positions [from, to) of a block's order.
struct BlockRange {
  std::shared_ptr<const Block> block;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t size() const { return to - from; }
};

// Rows of a block in streams that are not shuffled: few, so that a block stays in the cache.
inline constexpr uint64_t kUnshuffledBlockRows = 8192;

// Both fill `block->order` with the block's rows: ShuffleBlock with a permutation that is a
// function of (seed, epoch, split, block), KeepOrder in the order of the file.
void ShuffleBlock(uint64_t seed, uint32_t epoch, Block* block);
void KeepOrder(Block* block);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BLOCK_H_
