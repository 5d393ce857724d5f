#include "data_loader/batch/block.h"

#include <numeric>
#include <utility>

#include "common/numeric/random.h"

namespace satrap {

void KeepOrder(Block* block) {
  block->order.resize(block->records.rows());
  std::iota(block->order.begin(), block->order.end(), 0u);
}

// Fisher and Yates's shuffle (Knuth, The Art of Computer Programming 2, algorithm 3.4.2 P).
void ShuffleBlock(uint64_t seed, uint32_t epoch, Block* block) {
  KeepOrder(block);
  SplitMix64 random(RandomBits(RandomBits(seed, epoch, block->split), block->index));
  for (size_t left = block->order.size(); left > 1; --left) {
    std::swap(block->order[left - 1], block->order[random.Below(left)]);
  }
}

}  // namespace satrap
