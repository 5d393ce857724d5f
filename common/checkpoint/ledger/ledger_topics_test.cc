// The ledger of topic partitions. ledger_test.cc tests files, and what both have in common.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/checkpoint/ledger/ledger.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using OpenBlocks = std::vector<Ledger::OpenBlock>;

// A place in a block's permuted order.
struct Place {
  uint32_t slot = 0;
  uint32_t line = 0;
};

// The range between two places of the block with offsets [first, end). Offset end - 1 has the last
// message.
ProvenanceRange Slots(uint64_t first, uint64_t end, Place from, Place to, uint32_t records,
                      uint32_t split = 0) {
  ProvenanceRange range;
  range.set_split(split);
  range.set_block(first);
  range.set_block_end(end);
  range.set_from(from.slot);
  range.set_from_line(from.line);
  range.set_to(to.slot);
  range.set_to_line(to.line);
  range.set_records(records);
  range.set_last_offset(end - 1);
  range.set_last_hash(1000 + end);
  return range;
}

ProvenanceRange WholeBlock(uint64_t first, uint64_t end, uint32_t records) {
  return Slots(first, end, {}, {static_cast<uint32_t>(end - first), 0}, records);
}

ProvenanceRange WithoutRecords(uint64_t first, uint64_t end) {
  ProvenanceRange range = WholeBlock(first, end, 0);
  range.clear_last_offset();
  range.clear_last_hash();
  return range;
}

ProvenanceRange EndOf(uint64_t start, uint64_t end, uint32_t split = 0) {
  ProvenanceRange range;
  range.set_split(split);
  range.set_block(start);
  range.set_block_end(end);
  range.set_ends_split(true);
  return range;
}

std::string TextOf(const Ledger& ledger) { return ledger.ToState().DebugString(); }

void AddAll(const std::vector<ProvenanceRange>& ranges, Ledger* ledger) {
  for (const ProvenanceRange& range : ranges) {
    const absl::Status added = ledger->Add(0, range);
    ASSERT_TRUE(added.ok()) << added;
  }
}

// A partition from offset `start` on, in blocks of 1 to 6 offsets. Each offset has up to two lines.
// The blocks are divided into ranges, which begin and end at records.
struct Partition {
  static constexpr uint32_t kLines = 3;  // places of a slot: its lines, and the place after them

  explicit Partition(std::mt19937* random) {
    const auto below = [random](uint32_t limit) {
      return static_cast<uint32_t>((*random)() % limit);
    };
    start = end = below(3) * 100;
    for (uint32_t b = below(7); b > 0; --b) {
      const uint32_t slots = 1 + below(6);
      std::vector<Place> records;
      for (uint32_t slot = 0; slot < slots; ++slot) {
        for (uint32_t line = 0; line < 2; ++line) {
          if (below(3) > 0) records.push_back({slot, line});
        }
      }
      const uint64_t first = std::exchange(end, end + slots);
      sizes[first] = slots;
      Place from;
      uint32_t in_range = 0;
      for (const Place& record : records) {
        if (in_range > 0 && below(2) == 0) {
          ranges.push_back(Slots(first, end, from, record, std::exchange(in_range, 0)));
          from = record;
        }
        ++in_range;
      }
      ranges.push_back(Slots(first, end, from, {slots, 0}, in_range));
      if (records.empty()) ranges.back() = WithoutRecords(first, end);
    }
    ranges.push_back(EndOf(start, end));
    std::shuffle(ranges.begin(), ranges.end(), *random);
  }

  uint64_t start = 0;
  uint64_t end = 0;
  std::map<uint64_t, uint32_t> sizes;  // slots, by first offset
  std::vector<ProvenanceRange> ranges;
};

// A reference implementation: a separate flag for each place of a partition says whether it is
// consumed.
class NaiveLedger {
 public:
  explicit NaiveLedger(const Partition& partition) : partition_(partition) {}

  void Add(const ProvenanceRange& range) {
    if (range.ends_split()) return;
    rows_ += range.records();
    for (const auto& [slot, line] : PlacesOf(range.block())) {
      const bool is_behind =
          slot > range.from() || (slot == range.from() && line >= range.from_line());
      const bool is_before = slot < range.to() || (slot == range.to() && line < range.to_line());
      if (is_behind && is_before) consumed_.insert({range.block(), slot, line});
    }
    if (range.has_last_offset()) last_messages_.insert(range.block());
  }

  using Places = std::set<std::pair<uint32_t, uint32_t>>;
  Places PlacesOf(uint64_t block) const {
    Places places;
    for (uint32_t slot = 0; slot < partition_.sizes.at(block); ++slot) {
      for (uint32_t line = 0; line < Partition::kLines; ++line) places.insert({slot, line});
    }
    return places;
  }
  Places ConsumedOf(uint64_t block) const {
    Places places;
    for (const auto& [slot, line] : PlacesOf(block)) {
      if (consumed_.count({block, slot, line}) > 0) places.insert({slot, line});
    }
    return places;
  }
  bool IsDone(uint64_t block) const { return ConsumedOf(block) == PlacesOf(block); }
  bool IsOpen(uint64_t block) const { return !ConsumedOf(block).empty() && !IsDone(block); }

  void ExpectSame(const Ledger& ledger) const {
    OpenBlocks open, done;
    uint64_t contiguous = partition_.start;
    size_t stretches = 0;
    bool in_stretch = false;
    absl::optional<Ledger::LastMessage> last;
    for (const auto& [first, slots] : partition_.sizes) {
      if (IsOpen(first)) open.push_back({first, first + slots});
      if (IsDone(first)) {
        const bool joins = !done.empty() && done.back().end == first;
        if (!joins) done.push_back({first, first});
        done.back().end = first + slots;
        if (contiguous == first) contiguous = first + slots;
        if (last_messages_.count(first) > 0) last = {first + slots - 1, 1000 + first + slots};
      }
      const Places consumed = ConsumedOf(first);
      for (const auto& place : PlacesOf(first)) {
        const bool is_consumed = consumed.count(place) > 0;
        stretches += is_consumed && !in_stretch ? 1 : 0;
        in_stretch = is_consumed;
      }
      Places held;
      for (const Ledger::Range& range : ledger.Consumed(0, 0, first, slots)) {
        for (const auto& [slot, line] : PlacesOf(first)) {
          if (slot < range.from || (slot == range.from && line < range.from_line)) continue;
          if (slot > range.to || (slot == range.to && line >= range.to_line)) continue;
          held.insert({slot, line});
        }
      }
      EXPECT_EQ(held, consumed) << "block " << first;
      for (uint64_t offset = first; offset < first + slots; ++offset) {
        EXPECT_EQ(ledger.IsBlockBegun(0, 0, offset), consumed.count({0, 0}) > 0) << offset;
      }
    }
    EXPECT_EQ(ledger.OfEpoch(0).rows, rows_);
    if (ledger.IsSplitDone(0, 0)) return;
    EXPECT_EQ(ledger.OpenBlocks(0, 0), open);
    EXPECT_EQ(ledger.DoneBlocks(0, 0, partition_.start), done);
    EXPECT_EQ(ledger.ContiguousEnd(0, 0, partition_.start), contiguous);
    EXPECT_EQ(ledger.LastMessageOf(0, 0), last);
    EXPECT_EQ(ledger.PiecesBehind(), stretches == 0 ? 0 : stretches - 1);
    EXPECT_EQ(ledger.RowsOf(0, 0).consumed, rows_);
  }

 private:
  const Partition& partition_;
  std::set<std::tuple<uint64_t, uint32_t, uint32_t>> consumed_;
  std::set<uint64_t> last_messages_;
  uint64_t rows_ = 0;
};

TEST(LedgerTopicsTest, APartitionHoldsWhatWasAddedAndNothingElse) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Partition partition(&random);
    NaiveLedger naive(partition);
    Ledger ledger;
    for (const ProvenanceRange& range : partition.ranges) {
      AddAll({range}, &ledger);
      naive.Add(range);
      naive.ExpectSame(ledger);
      EXPECT_EQ(ledger.Add(0, range).code(), absl::StatusCode::kInternal) << "twice";
    }
    EXPECT_TRUE(ledger.IsSplitDone(0, 0));
  }
}

TEST(LedgerTopicsTest, TheOrderInWhichDeltasAreMergedDoesNotMatter) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const Partition partition(&random);
    NaiveLedger naive(partition);
    Ledger whole;
    std::vector<Ledger> deltas(3);
    const size_t added = random() % (partition.ranges.size() + 1);
    for (size_t i = 0; i < added; ++i) {
      AddAll({partition.ranges[i]}, &whole);
      AddAll({partition.ranges[i]}, &deltas[random() % 3]);
      naive.Add(partition.ranges[i]);
    }
    std::shuffle(deltas.begin(), deltas.end(), random);
    Ledger merged;
    for (const Ledger& delta : deltas) {
      // A rank sends its delta to rank 0 in this form.
      const auto read = Ledger::FromState(delta.ToState());
      ASSERT_TRUE(read.ok()) << read.status() << TextOf(delta);
      const absl::Status status = merged.Merge(*read);
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(TextOf(merged), TextOf(whole));
    naive.ExpectSame(merged);
    for (const Ledger& delta : deltas) {
      if (delta.empty()) continue;
      Ledger copy = merged;
      EXPECT_EQ(copy.Merge(delta).code(), absl::StatusCode::kInternal) << "twice";
    }
  }
}

TEST(LedgerTopicsTest, ABlockKeepsItsBoundsAndItsNeighbours) {
  Ledger ledger;
  AddAll({Slots(100, 200, {10, 0}, {20, 3}, 30), WholeBlock(300, 400, 100)}, &ledger);
  const std::string before = TextOf(ledger);
  const std::vector<ProvenanceRange> refused = {
      Slots(100, 180, {30, 0}, {40, 0}, 10),   // another end
      Slots(90, 101, {0, 0}, {5, 0}, 5),       // overlaps the open block
      Slots(199, 250, {0, 0}, {5, 0}, 5),      // also overlaps it
      Slots(150, 160, {0, 0}, {5, 0}, 5),      // within it
      Slots(50, 250, {0, 0}, {5, 0}, 5),       // around it
      WholeBlock(390, 410, 20),                // overlaps what is whole
      WholeBlock(250, 310, 60),                // also overlaps it
      Slots(100, 200, {20, 2}, {21, 0}, 3),    // a line twice
      Slots(100, 200, {9, 0}, {10, 1}, 3),     // a line twice
      Slots(100, 200, {30, 0}, {100, 1}, 70),  // out of the block
      Slots(100, 200, {30, 5}, {30, 5}, 0),    // an empty range
  };
  for (const ProvenanceRange& range : refused) {
    EXPECT_EQ(ledger.Add(0, range).code(), absl::StatusCode::kInternal) << range.DebugString();
    EXPECT_EQ(TextOf(ledger), before);
    Ledger delta;
    if (!delta.Add(0, range).ok()) continue;
    Ledger copy = ledger;
    EXPECT_EQ(copy.Merge(delta).code(), absl::StatusCode::kInternal) << range.DebugString();
  }
  AddAll({Slots(100, 200, {20, 3}, {21, 0}, 2), Slots(100, 200, {9, 7}, {10, 0}, 1),
          WholeBlock(200, 300, 0), WholeBlock(90, 100, 3)},
         &ledger);
}

TEST(LedgerTopicsTest, AMalformedRangeIsRefusedAndLeavesNoTrace) {
  Ledger ledger;
  std::vector<ProvenanceRange> refused = {WholeBlock(5, 5, 0), EndOf(7, 6)};
  refused.push_back(WholeBlock(0, 10, 5));
  refused.back().clear_last_offset();
  refused.push_back(WholeBlock(0, 10, 5));
  refused.back().set_last_offset(10);
  refused.push_back(WholeBlock(0, 10, 5));
  refused.back().set_block_end(uint64_t{1} << 33);
  refused.push_back(WholeBlock(10, 20, 5));
  refused.back().set_block_end(9);
  for (const ProvenanceRange& range : refused) {
    EXPECT_EQ(ledger.Add(0, range).code(), absl::StatusCode::kInternal) << range.DebugString();
  }
  EXPECT_TRUE(ledger.empty());
}

TEST(LedgerTopicsTest, ASplitIsEitherAPieceOfAFileOrAPartition) {
  ProvenanceRange of_file;
  of_file.set_block(7);
  of_file.set_to(5);
  of_file.set_block_rows(5);
  Ledger files;
  AddAll({of_file}, &files);
  Ledger topics;
  AddAll({WholeBlock(0, 5, 5)}, &topics);
  EXPECT_FALSE(files.Add(0, WholeBlock(100, 105, 5)).ok());
  EXPECT_FALSE(topics.Add(0, of_file).ok());
  EXPECT_FALSE(files.Merge(topics).ok());
}

TEST(LedgerTopicsTest, ABoundedPartitionIsDoneWithItsLastOffsetAndItsEnd) {
  Ledger ledger;
  AddAll({WholeBlock(150, 200, 50), EndOf(100, 200)}, &ledger);
  EXPECT_TRUE(ledger.IsSplitEndConsumed(0, 0));
  EXPECT_FALSE(ledger.IsSplitDone(0, 0));
  EXPECT_FALSE(ledger.Add(0, EndOf(100, 200)).ok()) << "its end was consumed before";
  EXPECT_FALSE(ledger.Add(0, WholeBlock(200, 201, 1)).ok()) << "after its end";
  EXPECT_FALSE(ledger.Add(0, WholeBlock(99, 101, 1)).ok()) << "before its start";
  AddAll({WholeBlock(100, 150, 0)}, &ledger);
  EXPECT_TRUE(ledger.IsSplitDone(0, 0));
  EXPECT_EQ(ledger.OfAll().rows, 50u);
  EXPECT_EQ(ledger.ToState().epochs(0).splits_size(), 0);
}

TEST(LedgerTopicsTest, AnEndThatLeavesOutWhatIsConsumedIsRefused) {
  Ledger ledger;
  AddAll({WholeBlock(100, 150, 50), Slots(180, 200, {1, 0}, {2, 0}, 1)}, &ledger);
  EXPECT_FALSE(ledger.Add(0, EndOf(101, 200)).ok());
  EXPECT_FALSE(ledger.Add(0, EndOf(100, 199)).ok());
  AddAll({EndOf(100, 200)}, &ledger);
}

TEST(LedgerTopicsTest, AnEmptyPartitionIsDoneByItsEndAlone) {
  Ledger ledger;
  AddAll({EndOf(40, 40, 3)}, &ledger);
  EXPECT_TRUE(ledger.IsSplitDone(0, 3));
  EXPECT_EQ(ledger.OfAll().rows, 0u);
}

TEST(LedgerTopicsTest, BlocksWithoutRecordsAreConsumedLikeOthers) {
  Ledger ledger;
  AddAll({WithoutRecords(0, 10), WithoutRecords(20, 30)}, &ledger);
  const auto read = Ledger::FromState(ledger.ToState());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ContiguousEnd(0, 0, 0), 10u);
  EXPECT_EQ(read->LastMessageOf(0, 0), absl::nullopt);
  EXPECT_EQ(ledger.OfAll().rows, 0u);
  AddAll({WholeBlock(10, 20, 10), WithoutRecords(30, 40)}, &ledger);
  EXPECT_EQ(ledger.ContiguousEnd(0, 0, 0), 40u);
  EXPECT_EQ(ledger.LastMessageOf(0, 0)->offset, 19u) << "of the last block that has one";
}

TEST(LedgerTopicsTest, ReadingGoesOnAfterTheWholeBlocksFromTheStart) {
  Ledger ledger;
  EXPECT_EQ(ledger.ContiguousEnd(0, 0, 70), 70u) << "nothing is consumed";
  AddAll({WholeBlock(100, 150, 50)}, &ledger);
  EXPECT_EQ(ledger.ContiguousEnd(0, 0, 70), 70u) << "the block at 70 is not";
  EXPECT_EQ(ledger.ContiguousEnd(0, 0, 100), 150u);
  EXPECT_EQ(ledger.ContiguousEnd(0, 0, 120), 150u);
  AddAll({WholeBlock(200, 300, 100)}, &ledger);
  EXPECT_EQ(ledger.DoneBlocks(0, 0, 0), (OpenBlocks{{100, 150}, {200, 300}}));
  EXPECT_EQ(ledger.DoneBlocks(0, 0, 150), (OpenBlocks{{200, 300}}));
  EXPECT_EQ(ledger.DoneBlocks(0, 0, 250), (OpenBlocks{{250, 300}}));
}

TEST(LedgerTopicsTest, TheLastMessageIsThatOfTheHighestBlockThatIsWhole) {
  Ledger ledger;
  AddAll({WholeBlock(100, 200, 9), Slots(200, 300, {0, 0}, {5, 0}, 5), WholeBlock(50, 100, 9)},
         &ledger);
  EXPECT_EQ(ledger.LastMessageOf(0, 0), (Ledger::LastMessage{199, 1200}));
  // Compaction has removed message 299 since the block was first read.
  ProvenanceRange rest = Slots(200, 300, {5, 0}, {100, 0}, 80);
  rest.set_last_offset(298);
  rest.set_last_hash(5);
  AddAll({rest}, &ledger);
  EXPECT_EQ(ledger.LastMessageOf(0, 0), (Ledger::LastMessage{299, 1300}));
}

TEST(LedgerTopicsTest, AMessageThatChangedIsRefused) {
  Ledger ledger;
  AddAll({Slots(200, 300, {0, 0}, {5, 0}, 5)}, &ledger);
  ProvenanceRange rest = Slots(200, 300, {5, 0}, {100, 0}, 80);
  rest.set_last_hash(6);
  EXPECT_FALSE(ledger.Add(0, rest).ok());
}

TEST(LedgerTopicsTest, AnEpochOfABoundedTopicThatIsClosedKeepsItsTotals) {
  Ledger ledger;
  AddAll({WholeBlock(0, 10, 25), EndOf(0, 10)}, &ledger);
  ASSERT_TRUE(ledger.Add(1, Slots(0, 10, {0, 0}, {3, 1}, 4)).ok());
  ledger.CloseEpochsBefore(1);
  EXPECT_EQ(ledger.OfAll().rows, 29u);
  EXPECT_TRUE(ledger.IsSplitDone(0, 8));
  EXPECT_EQ(ledger.OpenBlocks(1, 0), (OpenBlocks{{0, 10}}));
}

TEST(LedgerTopicsTest, ADamagedStateIsRefused) {
  Ledger ledger;
  AddAll({WholeBlock(0, 10, 25), Slots(10, 30, {0, 0}, {3, 1}, 4), Slots(10, 30, {6, 0}, {8, 1}, 3),
          EndOf(0, 50)},
         &ledger);
  const LedgerState good = ledger.ToState();
  ASSERT_TRUE(Ledger::FromState(good).ok());
  const auto refuses = [&](const char* what, auto damage) {
    LedgerState state = good;
    damage(state.mutable_epochs(0)->mutable_splits(0));
    EXPECT_EQ(Ledger::FromState(state).status().code(), absl::StatusCode::kDataLoss) << what;
  };
  refuses("half of the lines",
          [](SplitLedger* split) { split->mutable_blocks(0)->mutable_lines()->RemoveLast(); });
  refuses("a block that overlaps what is whole",
          [](SplitLedger* split) { split->mutable_blocks(0)->set_block(9); });
  refuses("blocks that overlap", [](SplitLedger* split) {
    *split->add_blocks() = BlockLedger(split->blocks(0));
    split->mutable_blocks(1)->set_block(29);
  });
  refuses("a block of a file",
          [](SplitLedger* split) { split->mutable_blocks(0)->clear_block_end(); });
  refuses("ranges that touch", [](SplitLedger* split) {
    split->mutable_blocks(0)->set_from_to(2, 3);
    split->mutable_blocks(0)->set_lines(2, 1);
  });
  refuses("a line too many",
          [](SplitLedger* split) { split->mutable_blocks(0)->set_from_to(3, 20); });
  refuses("an end before its blocks", [](SplitLedger* split) { split->set_end_offset(29); });
  refuses("an end before its start", [](SplitLedger* split) { split->set_first_offset(51); });
  refuses("whole and not listed", [](SplitLedger* split) {
    split->clear_blocks();
    split->set_end_offset(10);
  });
}

// Blocks are read and divided into parts in order, but the parts are released in any order.
TEST(LedgerTopicsTest, AnEndlessPartitionNeverHoldsMoreThanOpenBlocksAndPartsInFlight) {
  std::mt19937 random(4);
  constexpr uint64_t kBlocks = 1'000'000;
  constexpr size_t kInFlight = 12;
  Ledger ledger;
  std::vector<ProvenanceRange> in_flight;
  std::map<uint64_t, size_t> open;  // for each open block, how many of its ranges are still to come
  size_t most = 0;
  size_t largest = 0;
  uint64_t next = 0;
  for (uint64_t blocks = 0; blocks < kBlocks || !in_flight.empty();) {
    if (blocks < kBlocks && in_flight.size() + 3 <= kInFlight) {
      const uint32_t slots = 1 + static_cast<uint32_t>(random() % 50);
      const uint32_t cut = static_cast<uint32_t>(random() % slots);
      const uint64_t first = std::exchange(next, next + slots);
      if (cut > 0) in_flight.push_back(Slots(first, next, {}, {cut, 1}, 2 * cut));
      in_flight.push_back(Slots(first, next, {cut, cut > 0 ? 1u : 0u}, {slots, 0}, slots));
      open[first] = cut > 0 ? 2 : 1;
      ++blocks;
      continue;
    }
    const size_t released = random() % in_flight.size();
    std::swap(in_flight[released], in_flight.back());
    AddAll({in_flight.back()}, &ledger);
    if (--open[in_flight.back().block()] == 0) open.erase(in_flight.back().block());
    in_flight.pop_back();
    const size_t pieces = ledger.PiecesBehind();
    ASSERT_LE(pieces, open.size() + in_flight.size());
    most = std::max(most, pieces);
    if (blocks % 1000 == 0) largest = std::max(largest, ledger.ToState().ByteSizeLong());
  }
  EXPECT_GT(most, 5u);
  EXPECT_LT(largest, 1000u);
  EXPECT_EQ(ledger.ContiguousEnd(0, 0, 0), next);
  EXPECT_EQ(ledger.PiecesBehind(), 0u);
  EXPECT_LT(ledger.ToState().ByteSizeLong(), 60u);
}

}  // namespace
}  // namespace satrap
