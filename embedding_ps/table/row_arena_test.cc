#include "embedding_ps/table/row_arena.h"

#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RowArenaTest, RowsStayWhereTheyAreAcrossChunks) {
  constexpr size_t kStride = 1 << 16;  // 512 rows a chunk
  RowArena arena(kStride);
  std::vector<float*> rows;
  for (uint32_t i = 0; i < 1200; ++i) {
    ASSERT_EQ(arena.Add(), i);
    rows.push_back(arena.Row(i));
    EXPECT_EQ(rows[i][0], 0);
    EXPECT_EQ(rows[i][kStride / sizeof(float) - 1], 0);
    rows[i][0] = static_cast<float>(i);
  }
  for (uint32_t i = 0; i < 1200; ++i) {
    ASSERT_EQ(arena.Row(i), rows[i]);
    ASSERT_EQ(rows[i][0], static_cast<float>(i));
  }
}

TEST(RowArenaTest, RowsOfOddStrideDoNotOverlap) {
  RowArena arena(136);
  for (uint32_t i = 0; i < 1000; ++i) arena.Add();
  for (uint32_t i = 1; i < 1000; ++i) {
    ASSERT_EQ(reinterpret_cast<char*>(arena.Row(i)) - reinterpret_cast<char*>(arena.Row(i - 1)),
              136);
  }
}

TEST(RowArenaTest, BytesFollowTheRowsInUse) {
  RowArena arena(128);
  EXPECT_EQ(arena.bytes(), 0u);
  arena.Add();
  EXPECT_EQ(arena.bytes(), kPageBytes);
  for (int i = 1; i < 100000; ++i) arena.Add();
  EXPECT_GE(arena.bytes(), 12800000u);
  EXPECT_LE(arena.bytes(), 12800000u + kHugePageBytes);
  arena.Clear();
  EXPECT_EQ(arena.bytes(), 0u);
  EXPECT_EQ(arena.num_rows(), 0u);
}

TEST(RowArenaTest, AFirstRowWithinTheHugePageCommitsNothingBeforeIt) {
  RowArena arena(128, 0.5);
  const uint32_t first = arena.Add();
  EXPECT_EQ(first, kHugePageBytes / 2 / 128);
  EXPECT_EQ(arena.Add(), first + 1);
  EXPECT_EQ(arena.num_rows(), 2u);
  EXPECT_EQ(arena.bytes(), kPageBytes);
  EXPECT_EQ(arena.Row(first)[0], 0);
  arena.Clear();
  EXPECT_EQ(arena.num_rows(), 0u);
  EXPECT_EQ(arena.bytes(), 0u);
  EXPECT_EQ(arena.Add(), first);
}

// All arenas hold the same number of rows, much like the shards of a table.
TEST(RowArenaTest, ArenasOfSpreadPhasesWasteHalfAHugePageEachOnAverage) {
  constexpr int kArenas = 16;
  std::vector<RowArena> arenas;
  for (int i = 0; i < kArenas; ++i) arenas.emplace_back(128, static_cast<double>(i) / kArenas);
  for (size_t rows = 1; rows <= 100000; ++rows) {
    size_t bytes = 0;
    for (RowArena& arena : arenas) {
      arena.Add();
      bytes += arena.bytes();
    }
    if (rows > 40000 && rows % 1000 == 0) {
      const double wasted =
          static_cast<double>(bytes - kArenas * rows * 128) / (kArenas * kHugePageBytes);
      ASSERT_GE(wasted, 0.45) << rows << " rows";
      ASSERT_LE(wasted, 0.55) << rows << " rows";
    }
  }
}

}  // namespace
}  // namespace satrap
