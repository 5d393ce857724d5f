#include "tests/simulation/data/sim_formats.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace satrap::simulation::formats {
namespace {

// The expected values come from tests/interop/reference_formats.py.
TEST(SimFormatsTest, KeysAndShufflesAreThoseOfTheReferenceProgram) {
  EXPECT_EQ(XxHash64OfShortText(""), 0xef46db3751d8e999u);
  EXPECT_EQ(XxHash64OfShortText("123456789"), 0x8cb841db40e6ae83u);
  EXPECT_EQ(XxHash64OfShortText("a string of an id"), 1343356299671660001u);
  EXPECT_EQ(KeyOfText("a string of an id", "user"), 8351814936304897300u);
  EXPECT_EQ(OwnerOfKey(8351814936304897300u, 3), 1);
  EXPECT_EQ(ShuffledRows(1, 0, 0, 0, 8), (std::vector<uint32_t>{4, 1, 3, 0, 6, 5, 2, 7}));
  EXPECT_EQ(ShuffledRows(~uint64_t{0}, ~uint32_t{0}, 9, uint64_t{1} << 40, 13),
            (std::vector<uint32_t>{5, 10, 6, 1, 8, 7, 12, 4, 9, 0, 11, 2, 3}));
}

TEST(SimFormatsTest, EveryShuffleIsAPermutation) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    for (uint32_t rows = 0; rows <= 12; ++rows) {
      std::vector<uint32_t> order = ShuffledRows(seed, seed % 3, seed % 5, seed % 7, rows);
      std::vector<uint32_t> sorted(rows);
      std::iota(sorted.begin(), sorted.end(), 0u);
      ASSERT_TRUE(std::is_permutation(order.begin(), order.end(), sorted.begin(), sorted.end()));
    }
  }
}

TEST(SimFormatsTest, SeedsEpochsSplitsAndBlocksAreShuffledDifferently) {
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t i = 0; i < 5; ++i) {
    orders.insert(ShuffledRows(100 + i, 0, 0, 0, 20));
    orders.insert(ShuffledRows(1, 1 + i, 0, 0, 20));
    orders.insert(ShuffledRows(1, 0, 1 + i, 0, 20));
    orders.insert(ShuffledRows(1, 0, 0, 1 + i, 20));
  }
  EXPECT_EQ(orders.size(), 20u);
}

}  // namespace
}  // namespace satrap::simulation::formats
