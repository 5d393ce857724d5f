// A BlockReader reads the records of one split, block by block. Implementations:
// file_block_reader.h, synthetic_block_reader.h.
//
// Not thread-safe. Calls wait for the disk, so it runs on the loader's parsing threads only.

#ifndef SATRAP_DATA_LOADER_BATCH_BLOCK_READER_H_
#define SATRAP_DATA_LOADER_BATCH_BLOCK_READER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/ledger/ledger.h"
#include "data_loader/batch/block.h"

namespace satrap {

// Which records of a split are consumed, according to a ledger.
struct SplitConsumption {
  const Ledger* ledger = nullptr;  // null: nothing is consumed
  uint32_t epoch = 0;
  uint32_t split = 0;

  std::vector<Ledger::Range> Of(uint64_t block, uint32_t block_rows) const {
    if (ledger == nullptr) return {};
    return ledger->Consumed(epoch, split, block, block_rows);
  }
  bool IsBlockBegun(uint64_t block) const {
    return ledger != nullptr && ledger->IsBlockBegun(epoch, split, block);
  }
};

class BlockReader {
 public:
  virtual ~BlockReader() = default;

  // Fills `block->records`, `block->index` and the block's counts with the next block that has a
  // record of the stream; false at the end of the split. May skip blocks that are completely
  // consumed. Errors name the file.
  virtual absl::StatusOr<bool> Next(Block* block) = 0;

  // The result also counts skipped blocks. REQUIRES: the last Next returned false
  virtual SplitEnd End() const = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BLOCK_READER_H_
