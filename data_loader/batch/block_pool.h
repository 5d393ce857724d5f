// A BlockPool hands out blocks and reuses their memory. Parts hold copies, so a block can be reused
// as soon as its last range is encoded.
//
// Not thread-safe.

#ifndef SATRAP_DATA_LOADER_BATCH_BLOCK_POOL_H_
#define SATRAP_DATA_LOADER_BATCH_BLOCK_POOL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "data_loader/batch/block.h"
#include "data_loader/parser/record_block.h"

namespace satrap {

class BlockPool {
 public:
  // `schema` must outlive the pool.
  explicit BlockPool(const RecordSchema& schema) : schema_(schema) {}

  // Returns a block that nobody else holds: a used one that still has its old contents, or a new
  // one.
  std::shared_ptr<Block> Take() {
    for (const std::shared_ptr<Block>& block : blocks_) {
      if (block.use_count() == 1) return block;
    }
    blocks_.push_back(std::make_shared<Block>(schema_));
    return blocks_.back();
  }
  int64_t in_use() const {
    return std::count_if(blocks_.begin(), blocks_.end(),
                         [](const auto& block) { return block.use_count() > 1; });
  }

 private:
  const RecordSchema& schema_;
  std::vector<std::shared_ptr<Block>> blocks_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BLOCK_POOL_H_
