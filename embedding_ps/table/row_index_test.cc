#include "embedding_ps/table/row_index.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

void Put(RowIndex* index, uint64_t key, uint32_t row) {
  ASSERT_EQ(index->Find(RowIndex::HashOf(key)), RowIndex::kAbsent);
  index->Insert(RowIndex::HashOf(key), row);
}

TEST(RowIndexTest, HashIsUndoneByKeyOf) {
  SplitMix64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t key = random.Next();
    EXPECT_EQ(RowIndex::KeyOf(RowIndex::HashOf(key)), key);
  }
}

TEST(RowIndexTest, FindsWhatWasInsertedThroughManyGrowths) {
  RowIndex index;
  for (uint32_t i = 0; i < 100000; ++i) Put(&index, i * 977, i);
  EXPECT_EQ(index.size(), 100000u);
  for (uint32_t i = 0; i < 100000; ++i) {
    ASSERT_EQ(index.Find(RowIndex::HashOf(i * 977)), i);
    ASSERT_EQ(index.Find(RowIndex::HashOf(i * 977 + 1)), RowIndex::kAbsent);
  }
}

TEST(RowIndexTest, EveryKeyIsLegal) {
  RowIndex index;
  // The keys whose hashes are the smallest and the largest, and those that look like an empty slot.
  std::vector<uint64_t> keys = {0, 1, std::numeric_limits<uint64_t>::max(), uint64_t{1} << 63};
  for (const uint64_t hash : {uint64_t{0}, uint64_t{1}, ~uint64_t{1}, ~uint64_t{0}}) {
    keys.push_back(RowIndex::KeyOf(hash));
  }
  for (uint32_t i = 0; i < keys.size(); ++i) Put(&index, keys[i], i);
  for (uint32_t i = 0; i < 5000; ++i) Put(&index, 100 + i, 1000 + i);
  for (uint32_t i = 0; i < keys.size(); ++i) EXPECT_EQ(index.Find(RowIndex::HashOf(keys[i])), i);
}

// All keys of a run that ends the array: the overflow lines fill, and the index grows before its
// load asks for it.
TEST(RowIndexTest, HashesThatCrowdAtTheEndFindRoom) {
  RowIndex index;
  for (uint32_t i = 0; i < 2000; ++i) index.Insert(~uint64_t{0} - 7 * i, i);
  for (uint32_t i = 0; i < 2000; ++i) ASSERT_EQ(index.Find(~uint64_t{0} - 7 * i), i);
  EXPECT_EQ(index.Find(~uint64_t{0} - 3), RowIndex::kAbsent);
}

TEST(RowIndexTest, LargestRowNumberIsKept) {
  RowIndex index;
  Put(&index, 5, RowIndex::kFurther - 1);
  EXPECT_EQ(index.Find(RowIndex::HashOf(5)), RowIndex::kFurther - 1);
}

TEST(RowIndexTest, ForEachVisitsEveryKeyOnceInAnOrderOfTheKeysOnly) {
  RowIndex forwards, backwards;
  for (uint32_t i = 0; i < 3000; ++i) Put(&forwards, i, i);
  for (uint32_t i = 3000; i-- > 0;) Put(&backwards, i, i);
  std::vector<uint64_t> a, b;
  forwards.ForEach([&](uint64_t key, uint32_t row) {
    EXPECT_EQ(key, row);
    a.push_back(key);
  });
  backwards.ForEach([&](uint64_t key, uint32_t) { b.push_back(key); });
  EXPECT_EQ(a, b);
  EXPECT_EQ(std::set<uint64_t>(a.begin(), a.end()).size(), 3000u);
}

TEST(RowIndexTest, CostsLessThan24BytesARowOnceItIsLarge) {
  RowIndex index;
  for (uint32_t i = 0; i < 300000; ++i) {
    Put(&index, i, i);
    if (i > 20000 && i % 1000 == 0) {
      ASSERT_LE(static_cast<double>(index.bytes()) / i, 23.8) << i << " rows";
    }
  }
}

// As the shards of a table: about as many rows each.
TEST(RowIndexTest, IndexesOfSpreadPhasesCostTheMeanBytesARowAtAnySize) {
  constexpr int kIndexes = 16;
  std::vector<RowIndex> indexes;
  for (int i = 0; i < kIndexes; ++i) indexes.emplace_back(0, static_cast<double>(i) / kIndexes);
  for (uint32_t row = 0; row < 60000; ++row) {
    size_t bytes = 0;
    for (RowIndex& index : indexes) {
      Put(&index, row, row);
      bytes += index.bytes();
    }
    if (row > 20000 && row % 100 == 0) {
      const double mean = static_cast<double>(bytes) / (row + 1) / kIndexes;
      ASSERT_GE(mean, 21.6) << row << " rows";
      ASSERT_LE(mean, 22.2) << row << " rows";
    }
  }
}

TEST(RowIndexTest, ReservedRoomIsNotOutgrown) {
  RowIndex index(50000);
  const size_t bytes = index.bytes();
  for (uint32_t i = 0; i < 50000; ++i) Put(&index, i, i);
  EXPECT_EQ(index.bytes(), bytes);
}

TEST(RowIndexTest, AReserveThatIsOutgrownLeadsBackToTheSizesOfThePhase) {
  RowIndex reserved(50000, 0.4);
  RowIndex grown(0, 0.4);
  for (uint32_t i = 0; i < 70000; ++i) {
    Put(&reserved, i, i);
    Put(&grown, i, i);
  }
  EXPECT_EQ(reserved.bytes(), grown.bytes());
}

}  // namespace
}  // namespace satrap
