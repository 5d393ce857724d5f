#include "embedding_ps/table/row_index.h"

#include <algorithm>
#include <set>
#include <vector>

#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// The key of an id. It is also the ordinal, because one shard holds all partitions.
uint64_t KeyOfId(uint64_t id) { return KeyOf(id, Xxh64("ids")); }

void Put(RowIndex* index, uint64_t id, uint32_t row) {
  ASSERT_EQ(index->Find(KeyOfId(id)), RowIndex::kAbsent);
  index->Insert(KeyOfId(id), row);
}

TEST(RowIndexTest, FindsWhatWasInsertedThroughManyGrowths) {
  RowIndex index;
  for (uint32_t i = 0; i < 100000; ++i) Put(&index, i * 977, i);
  EXPECT_EQ(index.size(), 100000u);
  for (uint32_t i = 0; i < 100000; ++i) {
    ASSERT_EQ(index.Find(KeyOfId(i * 977)), i);
    ASSERT_EQ(index.Find(KeyOfId(i * 977 + 1)), RowIndex::kAbsent);
  }
}

TEST(RowIndexTest, EveryOrdinalIsLegal) {
  RowIndex index;
  const std::vector<uint64_t> ordinals = {0, 1, ~uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 63};
  for (uint32_t i = 0; i < ordinals.size(); ++i) {
    ASSERT_EQ(index.Find(ordinals[i]), RowIndex::kAbsent);
    index.Insert(ordinals[i], i);
  }
  for (uint32_t i = 0; i < 5000; ++i) Put(&index, 100 + i, 1000 + i);
  for (uint32_t i = 0; i < ordinals.size(); ++i) {
    EXPECT_EQ(index.Find(ordinals[i]), i);
    ASSERT_NE(index.FindEntry(ordinals[i]), nullptr);
    EXPECT_EQ(index.FindEntry(ordinals[i])->row(), i);
  }
  EXPECT_EQ(index.FindEntry(2), nullptr);
}

// All ordinals are near the largest one. So the overflow lines fill up, and the index must grow
// earlier than its load alone would require.
TEST(RowIndexTest, OrdinalsThatCrowdAtTheEndFindRoom) {
  RowIndex index;
  for (uint32_t i = 0; i < 2000; ++i) index.Insert(~uint64_t{0} - 7 * i, i);
  for (uint32_t i = 0; i < 2000; ++i) ASSERT_EQ(index.Find(~uint64_t{0} - 7 * i), i);
  EXPECT_EQ(index.Find(~uint64_t{0} - 3), RowIndex::kAbsent);
}

TEST(RowIndexTest, LargestRowNumberIsKept) {
  RowIndex index;
  Put(&index, 5, RowIndex::kFurther - 1);
  EXPECT_EQ(index.Find(KeyOfId(5)), RowIndex::kFurther - 1);
}

std::vector<uint64_t> Walked(RowIndex* index, uint64_t first, uint64_t last) {
  std::vector<uint64_t> ordinals;
  index->Walk(first, last, [&](const RowIndex::Entry& entry) {
    ordinals.push_back(entry.ordinal());
    return true;
  });
  return ordinals;
}

TEST(RowIndexTest, WalkVisitsTheOrdinalsOfARangeOnceAscending) {
  SplitMix64 random(4);
  for (const int partitions : {1, 3, 256, 4096}) {
    RowIndex index(0, 0.5, partitions);
    const uint64_t end = static_cast<uint64_t>(partitions) << 52;  // 0: 2^64
    std::set<uint64_t> ordinals;
    for (uint32_t i = 0; i < 3000; ++i) {
      // A third of the ordinals are close to the beginning of the range, and a third to its end.
      uint64_t ordinal = i % 3 == 0 ? i : i % 3 == 1 ? end - 1 - i : random.Next();
      if (end != 0) ordinal %= end;
      if (!ordinals.insert(ordinal).second) continue;
      index.Insert(ordinal, i);
    }
    for (int range = 0; range < 200; ++range) {
      const auto any = [&] {
        const auto at = ordinals.lower_bound(end == 0 ? random.Next() : random.Below(end));
        const uint64_t ordinal = at == ordinals.end() ? end - 1 : *at;
        return ordinal > 0 ? ordinal - random.Below(2) : 0;
      };
      const uint64_t a = any(), b = any();
      const uint64_t first = std::min(a, b), last = std::max(a, b);
      const std::vector<uint64_t> wanted(ordinals.lower_bound(first), ordinals.upper_bound(last));
      ASSERT_EQ(Walked(&index, first, last), wanted) << partitions << " partitions";
    }
    ASSERT_EQ(Walked(&index, 0, end - 1).size(), ordinals.size());
  }
}

TEST(RowIndexTest, AnIndexThatIsAppendedInOrderIsTheOneThatInsertsGive) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{1000}, size_t{60000}}) {
    RowIndex inserted(0, 0.3), appended(0, 0.3), unexpected(0, 0.3);
    std::set<uint64_t> ordinals = {~uint64_t{0}, ~uint64_t{0} - 1};
    for (uint64_t i = 0; i < n; ++i) ordinals.insert(i % 5 == 0 ? ~uint64_t{0} - i : KeyOfId(i));
    for (const uint64_t ordinal : ordinals) {
      inserted.Insert(ordinal, static_cast<uint32_t>(ordinal >> 40));
    }
    appended.Expect(ordinals.size());
    const size_t bytes = appended.bytes();
    for (const uint64_t ordinal : ordinals) {
      appended.Append(ordinal, static_cast<uint32_t>(ordinal >> 40));
      unexpected.Append(ordinal, static_cast<uint32_t>(ordinal >> 40));
    }
    if (n < 100) {
      EXPECT_EQ(appended.bytes(), bytes) << "it did not grow";
    }
    for (RowIndex* index : {&appended, &unexpected}) {
      EXPECT_EQ(index->size(), ordinals.size());
      EXPECT_EQ(Walked(index, 0, ~uint64_t{0}), Walked(&inserted, 0, ~uint64_t{0}));
      for (const uint64_t ordinal : ordinals) {
        ASSERT_EQ(index->Find(ordinal), static_cast<uint32_t>(ordinal >> 40));
      }
      // Later inserts must also find their places.
      index->Insert(12345, 7);
      index->Insert(~uint64_t{0} - 3, 8);
      EXPECT_EQ(index->Find(12345), 7u);
      EXPECT_EQ(index->Find(~uint64_t{0} - 3), 8u);
    }
  }
}

TEST(RowIndexTest, MarksStayWithTheirKeysWhileTheIndexGrows) {
  RowIndex index;
  for (uint32_t i = 0; i < 100; ++i) index.Insert(KeyOfId(i), i, static_cast<uint8_t>(i % 3));
  for (uint32_t i = 100; i < 20000; ++i) Put(&index, i, i);
  for (uint32_t i = 0; i < 200; ++i) {
    ASSERT_EQ(index.FindEntry(KeyOfId(i))->mark(), i < 100 ? i % 3 : 0u) << i;
  }
  index.ClearMarks();
  for (uint32_t i = 0; i < 200; ++i) ASSERT_EQ(index.FindEntry(KeyOfId(i))->mark(), 0);
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

// All indexes hold the same number of rows, much like the shards of a table.
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
