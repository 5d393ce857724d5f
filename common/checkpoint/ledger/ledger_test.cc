#include "common/checkpoint/ledger/ledger.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

ProvenanceRange RecordsOf(uint32_t split, uint64_t block, uint32_t from, uint32_t to,
                          uint32_t block_rows) {
  ProvenanceRange range;
  range.set_split(split);
  range.set_block(block);
  range.set_from(from);
  range.set_to(to);
  range.set_block_rows(block_rows);
  return range;
}

ProvenanceRange EndOf(uint32_t split, uint64_t rows) {
  ProvenanceRange range;
  range.set_split(split);
  range.set_ends_split(true);
  range.set_split_rows(rows);
  return range;
}

std::string TextOf(const Ledger& ledger) { return ledger.ToState().DebugString(); }

void AddAll(uint32_t epoch, const std::vector<ProvenanceRange>& ranges, Ledger* ledger) {
  for (const ProvenanceRange& range : ranges) {
    const absl::Status added = ledger->Add(epoch, range);
    ASSERT_TRUE(added.ok()) << added;
  }
}

// The ranges, in random order, that consume all records of `splits` splits and the end of each
// split. A split has up to 4 blocks of 1 to 9 records each, and each block is cut into ranges at
// random places.
std::vector<ProvenanceRange> RandomEpoch(uint32_t splits, std::mt19937* random) {
  const auto below = [&](uint32_t limit) {
    return std::uniform_int_distribution<uint32_t>(0, limit - 1)(*random);
  };
  std::vector<ProvenanceRange> ranges;
  for (uint32_t split = 0; split < splits; ++split) {
    uint64_t rows = 0;
    const uint32_t blocks = below(5);
    for (uint32_t b = 0; b < blocks; ++b) {
      const uint32_t block_rows = 1 + below(9);
      for (uint32_t from = 0; from < block_rows;) {
        const uint32_t to = from + 1 + below(block_rows - from);
        ranges.push_back(RecordsOf(split, 2 * b, from, to, block_rows));
        if (from == 0) ranges.back().set_bad_records(below(3));
        from = to;
      }
      rows += block_rows;
    }
    ranges.push_back(EndOf(split, rows));
    ranges.back().set_empty_lines(below(3));
  }
  std::shuffle(ranges.begin(), ranges.end(), *random);
  return ranges;
}

TEST(LedgerTest, HoldsWhatWasAddedAndNothingElse) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const std::vector<ProvenanceRange> ranges = RandomEpoch(6, &random);
    Ledger ledger;
    std::set<std::tuple<uint32_t, uint64_t, uint32_t>> records;
    std::set<uint32_t> ends;
    Ledger::Totals totals;
    for (const ProvenanceRange& range : ranges) {
      AddAll(4, {range}, &ledger);
      for (uint32_t i = range.from(); i < range.to(); ++i) {
        records.insert({range.split(), range.block(), i});
      }
      if (range.ends_split()) ends.insert(range.split());
      totals.bad_records += range.bad_records();
      totals.empty_lines += range.empty_lines();
      EXPECT_EQ(ledger.OfEpoch(4).rows, records.size());
      EXPECT_EQ(ledger.OfEpoch(4).bad_records, totals.bad_records);
      EXPECT_EQ(ledger.OfAll().empty_lines, totals.empty_lines);
      for (const ProvenanceRange& other : ranges) {
        EXPECT_EQ(ledger.IsSplitEndConsumed(4, other.split()), ends.count(other.split()) == 1);
        if (other.ends_split()) continue;
        std::set<uint32_t> consumed;
        for (const Ledger::Range& each :
             ledger.Consumed(4, other.split(), other.block(), other.block_rows())) {
          for (uint32_t i = each.from; i < each.to; ++i) consumed.insert(i);
        }
        for (uint32_t i = 0; i < other.block_rows(); ++i) {
          EXPECT_EQ(consumed.count(i), records.count({other.split(), other.block(), i}));
        }
        EXPECT_EQ(ledger.IsBlockBegun(4, other.split(), other.block()), consumed.count(0) == 1);
      }
    }
    for (uint32_t split = 0; split < 6; ++split) EXPECT_TRUE(ledger.IsSplitDone(4, split));
    EXPECT_FALSE(ledger.IsSplitDone(4, 6));
    EXPECT_FALSE(ledger.IsSplitDone(3, 0));
  }
}

TEST(LedgerTest, TheOrderInWhichDeltasAreMergedDoesNotMatter) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    const std::vector<ProvenanceRange> ranges = RandomEpoch(8, &random);
    Ledger whole;
    std::vector<Ledger> deltas(4);
    const size_t added = ranges.size() * 3 / 4;
    for (size_t i = 0; i < added; ++i) {
      AddAll(0, {ranges[i]}, &whole);
      AddAll(0, {ranges[i]}, &deltas[random() % 4]);
    }
    std::shuffle(deltas.begin(), deltas.end(), random);
    Ledger merged;
    for (const Ledger& delta : deltas) ASSERT_TRUE(merged.Merge(delta).ok());
    EXPECT_EQ(TextOf(merged), TextOf(whole));
    EXPECT_EQ(merged.OfAll().bad_records, whole.OfAll().bad_records);
    AddAll(0, {ranges.begin() + static_cast<std::ptrdiff_t>(added), ranges.end()}, &merged);
    EXPECT_TRUE(merged.IsSplitDone(0, 7));
  }
}

TEST(LedgerTest, ARecordThatIsConsumedTwiceIsRefusedAndNothingChanges) {
  Ledger ledger;
  AddAll(0,
         {RecordsOf(1, 2, 10, 20, 100), RecordsOf(1, 3, 0, 4, 4), RecordsOf(2, 0, 0, 3, 3),
          EndOf(2, 3), EndOf(3, 7)},
         &ledger);
  const std::string before = TextOf(ledger);
  const std::vector<ProvenanceRange> refused = {RecordsOf(1, 2, 19, 21, 100),
                                                RecordsOf(1, 2, 0, 11, 100),
                                                RecordsOf(1, 2, 10, 20, 100),
                                                RecordsOf(1, 2, 0, 100, 100),
                                                RecordsOf(1, 3, 1, 2, 4),
                                                RecordsOf(2, 0, 1, 2, 3),
                                                EndOf(2, 3),
                                                EndOf(3, 7)};
  for (const ProvenanceRange& range : refused) {
    const absl::Status status = ledger.Add(0, range);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << range.DebugString();
    EXPECT_EQ(TextOf(ledger), before);
    Ledger delta;
    AddAll(0, {range}, &delta);
    Ledger copy = ledger;
    EXPECT_EQ(copy.Merge(delta).code(), absl::StatusCode::kInternal) << range.DebugString();
  }
  AddAll(1, refused[0].split() == 1 ? std::vector<ProvenanceRange>{refused[0]} : refused, &ledger);
}

TEST(LedgerTest, ARangeThatContradictsWhatIsKnownIsRefused) {
  Ledger ledger;
  for (const ProvenanceRange& range :
       {RecordsOf(0, 0, 2, 2, 5), RecordsOf(0, 0, 3, 2, 5), RecordsOf(0, 0, 0, 6, 5)}) {
    EXPECT_FALSE(ledger.Add(0, range).ok());
  }
  EXPECT_TRUE(ledger.empty()) << "a refused range leaves no trace";
  AddAll(0, {RecordsOf(0, 0, 0, 2, 5)}, &ledger);
  EXPECT_NE(
      ledger.Add(0, RecordsOf(0, 0, 2, 4, 6)).message().find("5 according to an earlier range"),
      std::string::npos);
  EXPECT_FALSE(ledger.Add(0, EndOf(0, 1)).ok()) << "fewer than were consumed";
  AddAll(0, {EndOf(0, 4)}, &ledger);
  EXPECT_FALSE(ledger.Add(0, RecordsOf(0, 0, 2, 5, 5)).ok()) << "more than the split has";
  Ledger two_more_blocks;
  AddAll(0, {RecordsOf(0, 1, 0, 3, 3)}, &two_more_blocks);
  EXPECT_FALSE(ledger.Merge(two_more_blocks).ok());
}

TEST(LedgerTest, CheckIsTheAnswerOfAddAndChangesNothing) {
  Ledger ledger;
  AddAll(0, {RecordsOf(1, 0, 0, 4, 10), EndOf(1, 12)}, &ledger);
  const std::string before = TextOf(ledger);
  EXPECT_TRUE(ledger.Check(0, RecordsOf(1, 0, 4, 10, 10)).ok());
  for (const ProvenanceRange& range : {RecordsOf(1, 0, 3, 5, 10), RecordsOf(1, 0, 4, 9, 9)}) {
    const absl::Status checked = ledger.Check(0, range);
    EXPECT_FALSE(checked.ok());
    EXPECT_EQ(checked, ledger.Add(0, range));
  }
  EXPECT_EQ(TextOf(ledger), before);
}

TEST(LedgerTest, KnowsTheRecordsOfASplitThatIsUnderWay) {
  Ledger ledger;
  EXPECT_EQ(ledger.RowsOf(0, 1).consumed, 0u);
  AddAll(0, {RecordsOf(1, 0, 0, 4, 10), RecordsOf(1, 1, 0, 2, 2)}, &ledger);
  EXPECT_EQ(ledger.RowsOf(0, 1).consumed, 6u);
  EXPECT_FALSE(ledger.RowsOf(0, 1).all.has_value());
  AddAll(0, {EndOf(1, 12)}, &ledger);
  EXPECT_EQ(ledger.RowsOf(0, 1).all, 12u);
}

TEST(LedgerTest, ASplitIsDoneWhicheverOfItsRecordsAndItsEndComesLast) {
  Ledger end_first;
  AddAll(0, {EndOf(5, 3)}, &end_first);
  EXPECT_TRUE(end_first.IsSplitEndConsumed(0, 5));
  EXPECT_FALSE(end_first.IsSplitDone(0, 5));
  AddAll(0, {RecordsOf(5, 0, 0, 3, 3)}, &end_first);
  EXPECT_TRUE(end_first.IsSplitDone(0, 5));
  Ledger end_last;
  AddAll(0, {RecordsOf(5, 0, 0, 3, 3)}, &end_last);
  EXPECT_FALSE(end_last.IsSplitDone(0, 5));
  AddAll(0, {EndOf(5, 3)}, &end_last);
  EXPECT_EQ(TextOf(end_first), TextOf(end_last));
  Ledger nothing;
  AddAll(0, {EndOf(5, 0)}, &nothing);
  EXPECT_TRUE(nothing.IsSplitDone(0, 5)) << "a split without good records";
}

TEST(LedgerTest, ALedgerIsTheSameAfterItWasSavedAndRead) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<ProvenanceRange> ranges = RandomEpoch(8, &random);
    Ledger ledger;
    AddAll(0, ranges, &ledger);
    ledger.CloseEpochsBefore(1);
    ranges.resize(ranges.size() / 2);
    AddAll(1, ranges, &ledger);
    const auto read = Ledger::FromState(ledger.ToState());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(TextOf(*read), TextOf(ledger));
    EXPECT_EQ(read->OfAll().rows, ledger.OfAll().rows);
  }
}

TEST(LedgerTest, TheStateOfFilesKeepsItsBytes) {
  Ledger ledger;
  ProvenanceRange end = EndOf(0, 100);
  end.set_bad_records(2);
  end.set_empty_lines(1);
  AddAll(0, {RecordsOf(0, 0, 0, 100, 100), end}, &ledger);
  ledger.CloseEpochsBefore(1);
  AddAll(
      1,
      {RecordsOf(0, 0, 0, 13, 13), EndOf(0, 13), RecordsOf(4, 1, 0, 7, 7), RecordsOf(4, 2, 0, 7, 7),
       RecordsOf(4, 7, 2, 4, 9), RecordsOf(4, 7, 6, 8, 9), EndOf(4, 40)},
      &ledger);
  EXPECT_EQ(
      absl::BytesToHexString(ledger.ToState().SerializeAsString()),
      "0a0808001064180220010a240801101f180020002a0200003216080410121828220201022a0a080710091a04"
      "02040608");
}

TEST(LedgerTest, ADamagedStateIsRefused) {
  Ledger ledger;
  AddAll(2,
         {RecordsOf(0, 0, 0, 3, 3), EndOf(0, 3), RecordsOf(4, 1, 0, 5, 5), RecordsOf(4, 7, 2, 4, 9),
          RecordsOf(4, 7, 6, 8, 9)},
         &ledger);
  const LedgerState good = ledger.ToState();
  ASSERT_TRUE(Ledger::FromState(good).ok());
  const auto refuses = [&](const char* what, auto damage) {
    LedgerState state = good;
    damage(state.mutable_epochs(0), state.mutable_epochs(0)->mutable_splits(0));
    EXPECT_EQ(Ledger::FromState(state).status().code(), absl::StatusCode::kDataLoss) << what;
  };
  refuses("half a pair", [](EpochLedger* epoch, SplitLedger*) { epoch->add_done_splits(9); });
  refuses("pairs descend", [](EpochLedger* epoch, SplitLedger*) {
    epoch->add_done_splits(0);
    epoch->add_done_splits(0);
  });
  refuses("pairs that touch", [](EpochLedger* epoch, SplitLedger*) {
    epoch->add_done_splits(1);
    epoch->add_done_splits(1);
  });
  refuses("done and not done",
          [](EpochLedger* epoch, SplitLedger*) { epoch->set_done_splits(1, 4); });
  refuses("a split twice", [](EpochLedger* epoch, SplitLedger* split) {
    *epoch->add_splits() = SplitLedger(*split);
  });
  refuses("fewer rows than its splits",
          [](EpochLedger* epoch, SplitLedger*) { epoch->set_rows(2); });
  refuses("more rows in ranges", [](EpochLedger*, SplitLedger* split) { split->set_rows(4); });
  refuses("more rows than the split",
          [](EpochLedger*, SplitLedger* split) { split->set_split_rows(8); });
  refuses("whole and not listed",
          [](EpochLedger*, SplitLedger* split) { split->set_split_rows(9); });
  refuses("a block twice", [](EpochLedger*, SplitLedger* split) {
    *split->add_blocks() = BlockLedger(split->blocks(0));
  });
  refuses("a block that is whole elsewhere",
          [](EpochLedger*, SplitLedger* split) { split->mutable_blocks(0)->set_block(1); });
  refuses("ranges overlap",
          [](EpochLedger*, SplitLedger* split) { split->mutable_blocks(0)->set_from_to(2, 3); });
  refuses("ranges touch",
          [](EpochLedger*, SplitLedger* split) { split->mutable_blocks(0)->set_from_to(2, 4); });
  refuses("out of the block",
          [](EpochLedger*, SplitLedger* split) { split->mutable_blocks(0)->set_block_rows(7); });
  refuses("a block without ranges",
          [](EpochLedger*, SplitLedger* split) { split->add_blocks()->set_block(8); });
  LedgerState twice = good;
  *twice.add_epochs() = good.epochs(0);
  EXPECT_EQ(Ledger::FromState(twice).status().code(), absl::StatusCode::kDataLoss);
}

TEST(LedgerTest, AClosedEpochKeepsItsTotalsAndTakesNothingMore) {
  Ledger ledger;
  AddAll(0, {RecordsOf(0, 0, 0, 3, 3), EndOf(0, 3)}, &ledger);
  AddAll(1, {RecordsOf(0, 0, 0, 2, 3)}, &ledger);
  ledger.CloseEpochsBefore(1);
  EXPECT_EQ(ledger.OfEpoch(0).rows, 3u);
  EXPECT_EQ(ledger.OfAll().rows, 5u);
  EXPECT_EQ(ledger.ToState().epochs(0).done_splits_size(), 0);
  EXPECT_TRUE(ledger.IsSplitDone(0, 77)) << "it is over, whatever it had";
  EXPECT_TRUE(ledger.IsBlockBegun(0, 0, 0));
  EXPECT_EQ(ledger.Consumed(0, 0, 0, 3), (std::vector<Ledger::Range>{{0, 3}}));
  EXPECT_FALSE(ledger.Add(0, RecordsOf(9, 0, 0, 1, 1)).ok());
  Ledger late;
  AddAll(0, {RecordsOf(9, 0, 0, 1, 1)}, &late);
  EXPECT_FALSE(ledger.Merge(late).ok());
  AddAll(1, {RecordsOf(0, 0, 2, 3, 3)}, &ledger);
}

TEST(LedgerTest, TheSizeDependsOnWhatIsUnderWayAndNotOnWhatWasRead) {
  Ledger ledger;
  size_t largest = 0;
  const uint32_t parts = 16;
  for (uint32_t split = 0; split < 1000; ++split) {
    for (uint64_t block = 0; block < 10; ++block) {
      // The odd parts come first, as if one of two ranks were faster than the other.
      for (uint32_t i = 0; i < parts; ++i) {
        const uint32_t part = (2 * i + 1) % parts + (2 * i + 1 >= parts ? -1 : 0);
        AddAll(0, {RecordsOf(split, block, part * 4, part * 4 + 4, parts * 4)}, &ledger);
        largest = std::max(largest, ledger.ToState().ByteSizeLong());
      }
    }
    if (split % 100 != 50) AddAll(0, {EndOf(split, 10 * parts * 4)}, &ledger);
  }
  EXPECT_EQ(ledger.OfAll().rows, 640'000u);
  EXPECT_LT(largest, 300u);
}

}  // namespace
}  // namespace satrap
