#include "data_loader/batch/block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

std::vector<uint32_t> Order(uint64_t seed, uint32_t epoch, uint32_t split, uint64_t index,
                            int rows = 100) {
  RecordSchema schema;
  Block block(schema);
  block.split = split;
  block.index = index;
  for (int i = 0; i < rows; ++i) {
    block.records.BeginRow();
    block.records.CommitRow();
  }
  ShuffleBlock(seed, epoch, &block);
  return block.order;
}

TEST(BlockTest, TheShuffleIsAPermutationOfSeedEpochSplitAndBlock) {
  const std::vector<uint32_t> order = Order(1, 0, 0, 0);
  EXPECT_EQ(order, Order(1, 0, 0, 0));
  EXPECT_NE(order, Order(2, 0, 0, 0));
  EXPECT_NE(order, Order(1, 1, 0, 0));
  EXPECT_NE(order, Order(1, 0, 1, 0));
  EXPECT_NE(order, Order(1, 0, 0, 1));
  std::vector<uint32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(sorted[i], i);
  EXPECT_NE(order, sorted);
}

// The expected values come from tests/interop/reference_formats.py, an implementation in another
// language.
TEST(BlockTest, ItsOrderIsPartOfTheFormat) {
  EXPECT_EQ(Order(1, 0, 0, 0, 8), (std::vector<uint32_t>{4, 1, 3, 0, 6, 5, 2, 7}));
  EXPECT_EQ(Order(2, 0, 0, 0, 8), (std::vector<uint32_t>{7, 5, 2, 4, 6, 0, 3, 1}));
  EXPECT_EQ(Order(1, 1, 0, 0, 8), (std::vector<uint32_t>{1, 6, 5, 2, 3, 7, 0, 4}));
  EXPECT_EQ(Order(1, 0, 1, 0, 8), (std::vector<uint32_t>{2, 0, 7, 3, 4, 5, 6, 1}));
  EXPECT_EQ(Order(1, 0, 0, 1, 8), (std::vector<uint32_t>{7, 1, 0, 6, 3, 5, 4, 2}));
  EXPECT_EQ(Order(7, 3, 11, 5, 20), (std::vector<uint32_t>{2, 7,  12, 9, 16, 10, 5,  8,  17, 15,
                                                           1, 14, 6,  0, 11, 4,  18, 19, 3,  13}));
  EXPECT_TRUE(Order(1, 0, 0, 0, 0).empty());
  EXPECT_EQ(Order(1, 0, 0, 0, 1), (std::vector<uint32_t>{0}));
}

TEST(BlockTest, EveryRowIsFirstAboutEquallyOften) {
  std::vector<int> first(5);
  for (uint32_t epoch = 0; epoch < 5000; ++epoch) ++first[Order(9, epoch, 0, 0, 5)[0]];
  for (const int count : first) EXPECT_NEAR(count, 1000, 150);
}

TEST(BlockTest, SlotsArePermutedLikeTheRecordsOfAFile) {
  for (const uint64_t block : {0, 1, 5}) {
    EXPECT_EQ(SlotOrder(7, 3, 11, block * 20, 20, 20), Order(7, 3, 11, block, 20));
    EXPECT_EQ(SlotOrder(7, 3, 11, block * 100 + 99, 100, 20), Order(7, 3, 11, block, 20))
        << "wherever in its shuffle_rows the block begins";
  }
  EXPECT_EQ(SlotOrder(7, 3, 11, 40, 0, 4), (std::vector<uint32_t>{0, 1, 2, 3})) << "not shuffled";
}

// Describes each record as "ROW@SLOT.LINE", in the order in which they are taken.
std::string TextOf(const Block& block) {
  std::string text;
  for (size_t i = 0; i < block.order.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : " ", block.order[i], "@", block.positions[i].slot, ".",
                    block.positions[i].line);
  }
  return text;
}

TEST(BlockTest, TheLinesOfASlotStayTogetherAndEmptySlotsShiftNothing) {
  Block block((RecordSchema()));
  for (int i = 0; i < 5; ++i) {
    block.records.BeginRow();
    block.records.CommitRow();
  }
  block.end_offset = 6;
  // Slots 1 and 3 have no record, and line 1 of slot 2 is a bad record.
  const std::vector<Position> places = {{0, 0}, {2, 0}, {2, 2}, {4, 0}, {5, 0}};
  OrderBySlots({4, 3, 2, 5, 1, 0}, places, &block);
  EXPECT_EQ(TextOf(block), "3@0.0 1@2.0 2@2.2 4@3.0 0@5.0");
  EXPECT_TRUE(std::is_sorted(block.positions.begin(), block.positions.end()));
  EXPECT_EQ(block.size(), 6u);
  OrderBySlots({0, 1, 2, 3, 4, 5}, places, &block);
  EXPECT_EQ(TextOf(block), "0@0.0 1@2.0 2@2.2 3@4.0 4@5.0") << "used again";
}

TEST(BlockTest, PiecesOfARangeCoverAllItsSlots) {
  auto block = std::make_shared<Block>(RecordSchema());
  block->end_offset = 9;
  block->order = {0, 1, 2};
  block->positions = {{1, 0}, {4, 0}, {4, 1}};
  const BlockRange all = {block, 0, 3, {}, {9, 0}};
  const BlockRange front = PieceOf(all, 0, 1);
  EXPECT_EQ(front.begin, (Position{0, 0}));
  EXPECT_EQ(front.end, (Position{4, 0}));
  const BlockRange middle = PieceOf(all, 1, 2);
  EXPECT_EQ(middle.begin, (Position{4, 0}));
  EXPECT_EQ(middle.end, (Position{4, 1}));
  const BlockRange back = PieceOf(PieceOf(all, 1, 3), 2, 3);
  EXPECT_EQ(back.begin, (Position{4, 1}));
  EXPECT_EQ(back.end, (Position{9, 0}));
}

}  // namespace
}  // namespace satrap
