#include "common/numeric/hash.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "xxhash.h"

namespace satrap {
namespace {

// Golden values: changing one changes the key of every id in every checkpoint.
TEST(HashTest, Xxh64KeepsItsGoldenValues) {
  EXPECT_EQ(Xxh64(""), 0xef46db3751d8e999ULL);
  EXPECT_EQ(Xxh64("a"), 0xd24ec4f1a98c6e5bULL);
  EXPECT_EQ(Xxh64("abc"), 0x44bc2cf5ad770999ULL);
  EXPECT_EQ(Xxh64("123456789"), 0x8cb841db40e6ae83ULL);
}

TEST(HashTest, Xxh64EqualsTheReferenceAtEveryLengthAndAlignment) {
  std::string bytes(400, '\0');
  SplitMix64 random(1);
  for (char& c : bytes) c = static_cast<char>(random.Next());
  for (size_t length = 0; length < 300; ++length) {
    for (size_t start : {0, 1, 3, 7}) {
      const absl::string_view view = absl::string_view(bytes).substr(start, length);
      for (uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
        ASSERT_EQ(Xxh64(view, seed), XXH64(view.data(), view.size(), seed)) << length;
      }
    }
  }
}

TEST(HashTest, KeysKeepTheirGoldenValues) {
  EXPECT_EQ(Mix64(0), 0u);
  // SplitMix64 with seed 0 first returns Mix64 of its increment.
  EXPECT_EQ(Mix64(0x9e3779b97f4a7c15ULL), 0xe220a8397b1dcdafULL);
  // These values are from a program in another language: tests/interop/reference_formats.py.
  EXPECT_EQ(KeyOf(42, Xxh64("C1")), 0xdec4d5210fb6dd1cULL);
  EXPECT_EQ(KeyOf(~uint64_t{0}, Xxh64("C1")), 0xf3afccedb74dc187ULL);
  EXPECT_EQ(KeyOf(7, Xxh64("user")), 0x3af992ef5688f118ULL);
  EXPECT_NE(KeyOf(7, Xxh64("user")), KeyOf(7, Xxh64("item")));
}

TEST(HashTest, PartitionsAreTheTopTwelveBits) {
  EXPECT_EQ(PartitionOf(0), 0);
  EXPECT_EQ(PartitionOf(~uint64_t{0}), kNumPartitions - 1);
  EXPECT_EQ(PartitionOf(uint64_t{5} << 52), 5);
}

TEST(HashTest, PartitionsAreDealtInContiguousRangesOfNearlyEqualLength) {
  for (int num_ps : {1, 2, 3, 7, 64, 4096}) {
    std::vector<int> count(num_ps);
    int last = 0;
    for (int partition = 0; partition < kNumPartitions; ++partition) {
      const int ps = PsOfPartition(partition, num_ps);
      ASSERT_TRUE(ps == last || ps == last + 1);
      ASSERT_LT(ps, num_ps);
      ++count[ps];
      last = ps;
    }
    const auto [least, most] = std::minmax_element(count.begin(), count.end());
    EXPECT_LE(*most - *least, 1) << num_ps;
  }
}

}  // namespace
}  // namespace satrap
