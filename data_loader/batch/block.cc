#include "data_loader/batch/block.h"

#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/numeric/random.h"

namespace satrap {
namespace {

// Fisher and Yates's shuffle (Knuth, The Art of Computer Programming 2, algorithm 3.4.2 P).
void Shuffle(uint64_t seed, uint32_t epoch, uint32_t split, uint64_t block,
             std::vector<uint32_t>* order) {
  SplitMix64 random(RandomBits(RandomBits(seed, epoch, split), block));
  for (size_t left = order->size(); left > 1; --left) {
    std::swap((*order)[left - 1], (*order)[random.Below(left)]);
  }
}

}  // namespace

BlockRange PieceOf(const BlockRange& range, uint32_t from, uint32_t to) {
  BlockRange piece = {range.block, from, to, range.begin, range.end};
  if (!range.block->is_of_topic()) return piece;
  if (from > range.from) piece.begin = range.block->positions[from];
  if (to < range.to) piece.end = range.block->positions[to];
  return piece;
}

void KeepOrder(Block* block) {
  block->order.resize(block->records.rows());
  std::iota(block->order.begin(), block->order.end(), 0u);
}

void ShuffleBlock(uint64_t seed, uint32_t epoch, Block* block) {
  KeepOrder(block);
  Shuffle(seed, epoch, block->split, block->index, &block->order);
}

std::vector<uint32_t> SlotOrder(uint64_t seed, uint32_t epoch, uint32_t split, uint64_t first,
                                uint64_t shuffle_rows, uint32_t slots) {
  std::vector<uint32_t> order(slots);
  std::iota(order.begin(), order.end(), 0u);
  if (shuffle_rows > 0) Shuffle(seed, epoch, split, first / shuffle_rows, &order);
  return order;
}

void OrderBySlots(absl::Span<const uint32_t> order, absl::Span<const Position> places,
                  Block* block) {
  const size_t rows = places.size();
  CHECK(rows == block->records.rows()) << rows << " places";
  // The rows of slot s are [first_row[s], first_row[s + 1]).
  std::vector<uint32_t> first_row(order.size() + 1, 0);
  for (const Position& place : places) ++first_row[place.slot + 1];
  for (size_t slot = 0; slot < order.size(); ++slot) first_row[slot + 1] += first_row[slot];
  block->order.clear();
  block->positions.clear();
  block->order.reserve(rows);
  block->positions.reserve(rows);
  for (size_t at = 0; at < order.size(); ++at) {
    for (uint32_t row = first_row[order[at]]; row < first_row[order[at] + 1]; ++row) {
      block->order.push_back(row);
      block->positions.push_back({static_cast<uint32_t>(at), places[row].line});
    }
  }
}

}  // namespace satrap
