#include "common/checkpoint/ledger/intervals.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(IntervalsTest, HoldWhatWasInsertedInAnyOrderInAsFewPairsAsPossible) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Intervals intervals;
    std::set<uint64_t> numbers;
    for (int i = 0; i < 30; ++i) {
      const uint64_t first = random() % 60;
      const uint64_t last = first + random() % 4;
      bool held = false;
      for (uint64_t value = first; value <= last; ++value) held |= numbers.count(value) > 0;
      ASSERT_EQ(intervals.Overlaps(first, last), held);
      if (held) continue;
      intervals.Insert(first, last);
      for (uint64_t value = first; value <= last; ++value) numbers.insert(value);
      size_t stretches = 0;
      for (const uint64_t value : numbers) stretches += value == 0 || !numbers.count(value - 1);
      ASSERT_EQ(intervals.size(), stretches);
    }
    for (uint64_t value = 0; value < 66; ++value) {
      EXPECT_EQ(intervals.Holds(value), numbers.count(value) == 1);
      uint64_t end = value;
      while (numbers.count(end) > 0) ++end;
      EXPECT_EQ(intervals.EndFrom(value), end);
    }
  }
}

TEST(IntervalsTest, KnowTheirBoundsAndWhetherTheyAreOnePair) {
  Intervals intervals;
  EXPECT_FALSE(intervals.Are(0, 0));
  intervals.Insert(5, 9);
  EXPECT_TRUE(intervals.Are(5, 9));
  intervals.Insert(20, 20);
  EXPECT_FALSE(intervals.Are(5, 9));
  EXPECT_FALSE(intervals.Are(5, 20));
  EXPECT_EQ(intervals.first(), 5u);
  EXPECT_EQ(intervals.last(), 20u);
}

TEST(IntervalsTest, AreReadAsTheyWereWrittenAndNotOtherwise) {
  struct Field {
    std::vector<uint64_t> values;
    void Add(uint64_t value) { values.push_back(value); }
    int size() const { return static_cast<int>(values.size()); }
    uint64_t Get(int i) const { return values[static_cast<size_t>(i)]; }
  };
  Intervals intervals;
  intervals.Insert(7, 8);
  intervals.Insert(1, 3);
  Field field;
  intervals.Write(&field);
  EXPECT_EQ(field.values, (std::vector<uint64_t>{1, 3, 7, 8}));
  Intervals read;
  EXPECT_TRUE(read.Read(field).ok());
  EXPECT_TRUE(std::equal(read.begin(), read.end(), intervals.begin(), intervals.end()));
  for (const std::vector<uint64_t>& bad :
       std::vector<std::vector<uint64_t>>{{1}, {3, 1}, {1, 3, 4, 5}, {1, 3, 2, 5}, {7, 8, 1, 3}}) {
    Intervals other;
    EXPECT_EQ(other.Read(Field{bad}).code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace satrap
