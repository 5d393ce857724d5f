#include "data_loader/batch/block.h"

#include <gtest/gtest.h>

#include <algorithm>

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

// Golden values from a program in another language: tests/interop/reference_formats.py.
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

}  // namespace
}  // namespace satrap
