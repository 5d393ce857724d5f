// A BlockReader reads the records of one split, block by block. Implementations:
// file_block_reader.h, synthetic_block_reader.h.
//
// Not thread-safe. Blocks on the disk, so it runs on the loader's parsing threads only.

#ifndef SATRAP_DATA_LOADER_BATCH_BLOCK_READER_H_
#define SATRAP_DATA_LOADER_BATCH_BLOCK_READER_H_

#include "absl/status/statusor.h"
#include "data_loader/batch/block.h"

namespace satrap {

class BlockReader {
 public:
  virtual ~BlockReader() = default;

  // Fills `block->records` and `block->index` with the next block that holds a record of the
  // stream; false at the end of the split. Errors name the file.
  virtual absl::StatusOr<bool> Next(Block* block) = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BLOCK_READER_H_
