#include "nn_worker/metrics/sorted_blocks.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using Blocks = SortedBlocks<uint64_t>;

std::vector<uint64_t> Ascending(Blocks* blocks) {
  std::vector<uint64_t> entries;
  blocks->ForEachAscending([&](uint64_t entry) { entries.push_back(entry); });
  return entries;
}

TEST(SortedBlocksTest, AnyNumberOfEntriesComesBackInOrder) {
  for (const size_t count :
       {size_t{0}, size_t{1}, Blocks::kLeastEntries, Blocks::kLeastEntries + 1, size_t{300000}}) {
    SplitMix64 random(count);
    Blocks blocks;
    std::vector<uint64_t> expected;
    for (size_t i = 0; i < count; ++i) {
      expected.push_back(random.Below(100000));
      blocks.Add(expected.back());
    }
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(blocks.size(), count);
    EXPECT_EQ(Ascending(&blocks), expected);
    EXPECT_EQ(Ascending(&blocks), expected) << "they stay";
  }
}

TEST(SortedBlocksTest, WhatIsTakenIsGoneAndMayBeFollowedByMore) {
  Blocks blocks;
  for (uint64_t i = 0; i < 20000; ++i) blocks.Add(i);
  std::vector<uint64_t> all;
  for (int round = 0; round < 3; ++round) {
    const size_t before = all.size();
    blocks.TakeSome(5000, [&](uint64_t entry) { all.push_back(entry); });
    EXPECT_EQ(all.size(), before + 5000);
  }
  EXPECT_EQ(blocks.size(), 5000u);
  for (uint64_t i = 20000; i < 30000; ++i) blocks.Add(i);
  blocks.TakeSome(1000000, [&](uint64_t entry) { all.push_back(entry); });
  EXPECT_EQ(blocks.size(), 0u);
  EXPECT_TRUE(Ascending(&blocks).empty());
  std::sort(all.begin(), all.end());
  for (uint64_t i = 0; i < 30000; ++i) ASSERT_EQ(all[i], i);
}

// An entry has a number in its upper half and, in its lower half, the number of entries that it
// represents.
size_t JoinEqual(uint64_t* entries, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (kept > 0 && entries[kept - 1] >> 32 == entries[i] >> 32) {
      entries[kept - 1] += entries[i] & 0xffffffff;
    } else {
      entries[kept++] = entries[i];
    }
  }
  return kept;
}

TEST(SortedBlocksTest, EqualEntriesAreJoinedSoThatManyTakeLittleMemory) {
  Blocks blocks(&JoinEqual);
  for (uint64_t i = 0; i < 1000000; ++i) blocks.Add((i % 10) << 32 | 1);
  EXPECT_LE(blocks.size(), Blocks::kLeastEntries) << "one block is enough";
  uint64_t samples = 0;
  blocks.ForEachAscending([&](uint64_t entry) { samples += entry & 0xffffffff; });
  EXPECT_EQ(samples, 1000000u);
}

}  // namespace
}  // namespace satrap
