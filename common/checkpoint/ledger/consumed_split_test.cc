// A single split. ledger_test.cc and ledger_topics_test.cc test many splits, and random ranges.

#include "common/checkpoint/ledger/consumed_split.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Offsets = ConsumedSplit::Offsets;
using Range = ConsumedSplit::Range;

ProvenanceRange Records(uint64_t block, uint32_t from, uint32_t to, uint32_t block_rows) {
  ProvenanceRange range;
  range.set_block(block);
  range.set_from(from);
  range.set_to(to);
  range.set_block_rows(block_rows);
  return range;
}
ProvenanceRange EndAfter(uint64_t rows) {
  ProvenanceRange range;
  range.set_ends_split(true);
  range.set_split_rows(rows);
  return range;
}
// A range of the block with offsets [block, end). It begins at the place `from` and ends before the
// place `to`. A place is a pair of a slot and a line.
ProvenanceRange Messages(uint64_t block, uint64_t end, std::pair<uint32_t, uint32_t> from,
                         std::pair<uint32_t, uint32_t> to) {
  ProvenanceRange range;
  range.set_block(block);
  range.set_block_end(end);
  range.set_from(from.first);
  range.set_from_line(from.second);
  range.set_to(to.first);
  range.set_to_line(to.second);
  range.set_records(1);
  range.set_last_offset(end - 1);
  range.set_last_hash(end * 7);
  return range;
}
ProvenanceRange Messages(uint64_t block, uint64_t end) {
  return Messages(block, end, {0, 0}, {static_cast<uint32_t>(end - block), 0});
}
ProvenanceRange Bounds(uint64_t first, uint64_t end) {
  ProvenanceRange range;
  range.set_ends_split(true);
  range.set_block(first);
  range.set_block_end(end);
  return range;
}

ConsumedSplit Of(const std::vector<ProvenanceRange>& ranges) {
  ConsumedSplit split;
  for (const ProvenanceRange& range : ranges) {
    EXPECT_EQ(split.Refusal(range), "") << NameOf(range);
    split.Add(range);
  }
  return split;
}
SplitLedger StateOf(const ConsumedSplit& split) {
  SplitLedger state;
  split.ToState(&state);
  return state;
}
std::string ReadError(const SplitLedger& state) {
  return std::string(ConsumedSplit::FromState(state).status().message());
}

TEST(ConsumedSplit, RangesOfABlockJoinInWhateverOrderTheyCome) {
  ConsumedSplit split = Of({Records(3, 0, 2, 9), Records(3, 7, 9, 9), Records(3, 4, 5, 9)});
  EXPECT_THAT(split.Consumed(3, 9), ElementsAre(Range{0, 2}, Range{4, 5}, Range{7, 9}));
  split.Add(Records(3, 2, 4, 9));
  EXPECT_THAT(split.Consumed(3, 9), ElementsAre(Range{0, 5}, Range{7, 9})) << "to both sides";
  EXPECT_THAT(split.OpenBlocks(), ElementsAre(Offsets{3, 4}));
  EXPECT_THAT(split.DoneBlocks(0), IsEmpty());
  split.Add(Records(3, 5, 7, 9));
  EXPECT_THAT(split.Consumed(3, 9), ElementsAre(Range{0, 9}));
  EXPECT_THAT(split.OpenBlocks(), IsEmpty());
  EXPECT_THAT(split.DoneBlocks(0), ElementsAre(Offsets{3, 4})) << "it is whole";
  EXPECT_EQ(split.rows(), 9u);
  EXPECT_THAT(split.Consumed(4, 9), IsEmpty());
}

TEST(ConsumedSplit, ABlockIsBegunOnceItsFirstPlaceIsConsumed) {
  const ConsumedSplit split = Of({Records(0, 0, 1, 4), Records(1, 1, 4, 4), Records(2, 0, 4, 4)});
  EXPECT_TRUE(split.IsBlockBegun(0));
  EXPECT_FALSE(split.IsBlockBegun(1));
  EXPECT_TRUE(split.IsBlockBegun(2));
  EXPECT_FALSE(split.IsBlockBegun(3));
  const ConsumedSplit topic =
      Of({Messages(10, 20, {0, 0}, {0, 3}), Messages(30, 40, {0, 1}, {2, 0})});
  EXPECT_TRUE(topic.IsBlockBegun(19)) << "by any of its offsets";
  EXPECT_FALSE(topic.IsBlockBegun(20));
  EXPECT_FALSE(topic.IsBlockBegun(30)) << "its first line is not";
}

TEST(ConsumedSplit, ASplitIsDoneWhenAllItsRecordsAndItsEndAre) {
  ConsumedSplit split = Of({Records(0, 0, 4, 4)});
  EXPECT_FALSE(split.is_done());
  EXPECT_FALSE(split.has_end());
  EXPECT_FALSE(split.split_rows().has_value());
  split.Add(EndAfter(6));
  EXPECT_TRUE(split.has_end());
  EXPECT_FALSE(split.is_done());
  EXPECT_EQ(split.split_rows(), 6u);
  split.Add(Records(1, 0, 2, 2));
  EXPECT_TRUE(split.is_done());
  EXPECT_TRUE(Of({EndAfter(0)}).is_done()) << "one without records";
}

TEST(ConsumedSplit, APartitionIsDoneWhenAllOffsetsOfItsBoundsAre) {
  ConsumedSplit split = Of({Messages(10, 20), Bounds(10, 30)});
  EXPECT_FALSE(split.is_done());
  EXPECT_EQ(split.ContiguousEnd(10), 20u);
  EXPECT_EQ(split.ContiguousEnd(11), 20u);
  EXPECT_EQ(split.ContiguousEnd(25), 25u) << "nothing from there on";
  split.Add(Messages(20, 30));
  EXPECT_TRUE(split.is_done());
  EXPECT_EQ(split.ContiguousEnd(10), 30u);
  EXPECT_THAT(split.DoneBlocks(15), ElementsAre(Offsets{15, 30})) << "blocks that touch are one";
  EXPECT_FALSE(split.split_rows().has_value());
  EXPECT_TRUE(Of({Bounds(7, 7)}).is_done()) << "an empty one";
}

// Compaction may remove the message that was the last one when the block was first read.
TEST(ConsumedSplit, OfSeveralLastMessagesThatOfTheHighestOffsetCounts) {
  ConsumedSplit split;
  EXPECT_FALSE(split.last_message().has_value());
  ProvenanceRange first = Messages(10, 20, {0, 0}, {5, 0});
  first.set_last_offset(19);
  split.Add(first);
  EXPECT_FALSE(split.last_message().has_value()) << "the block is not whole";
  ProvenanceRange rest = Messages(10, 20, {5, 0}, {10, 0});
  rest.set_last_offset(15);
  rest.set_last_hash(5);
  ASSERT_EQ(split.Refusal(rest), "");
  split.Add(rest);
  EXPECT_EQ(split.last_message()->offset, 19u);
  split.Add(Messages(0, 10));
  EXPECT_EQ(split.last_message()->offset, 19u) << "a block of before";
}

TEST(ConsumedSplit, PiecesAreCountedAfterTheFirst) {
  EXPECT_EQ(ConsumedSplit().PiecesBehind(), 0u);
  EXPECT_EQ(Of({Records(0, 0, 4, 4), Records(1, 0, 2, 4)}).PiecesBehind(), 0u) << "it goes on";
  EXPECT_EQ(Of({Records(0, 0, 4, 4), Records(2, 0, 4, 4)}).PiecesBehind(), 1u);
  EXPECT_EQ(Of({Records(0, 0, 2, 4), Records(0, 3, 4, 4), Records(1, 0, 4, 4)}).PiecesBehind(), 1u)
      << "the second goes on in the next block";
}

TEST(ConsumedSplit, RefusesWhatWouldBeTrainedTwiceOrCannotBe) {
  const ConsumedSplit split = Of({Records(0, 0, 4, 4), Records(1, 1, 3, 8), EndAfter(12)});
  EXPECT_EQ(split.Refusal(Records(0, 1, 2, 4)), "the whole block is consumed already");
  EXPECT_EQ(split.Refusal(Records(1, 2, 5, 8)), "trained twice");
  EXPECT_EQ(split.Refusal(Records(1, 0, 1, 9)),
            "the block has 9 records, but 8 according to an earlier range");
  EXPECT_EQ(split.Refusal(Records(2, 3, 3, 8)), "the block has 8 records");
  EXPECT_EQ(split.Refusal(Records(2, 0, 9, 8)), "the block has 8 records");
  EXPECT_EQ(split.Refusal(Records(2, 0, 7, 8)), "the split has only 12 records");
  EXPECT_EQ(split.Refusal(EndAfter(12)), "the split's end was consumed before");
  EXPECT_THAT(split.Refusal(Messages(5, 9)), HasSubstr("not both"));
  EXPECT_EQ(split.Refusal(Records(1, 3, 8, 8)), "") << "what is left is taken";
  EXPECT_EQ(Of({Records(0, 0, 4, 4)}).Refusal(EndAfter(3)),
            "it names 3 records, but 4 were consumed");
}

TEST(ConsumedSplit, RefusesOffsetsThatOverlapOrLeaveTheirPartition) {
  const ConsumedSplit split =
      Of({Messages(10, 20), Messages(30, 40, {0, 0}, {1, 0}), Bounds(10, 60)});
  EXPECT_EQ(split.Refusal(Messages(15, 25)), "some of the block's offsets are consumed already");
  EXPECT_EQ(split.Refusal(Messages(25, 35)), "it overlaps the block of offsets [30, 40)");
  EXPECT_EQ(split.Refusal(Messages(35, 45)), "it overlaps the block of offsets [30, 40)");
  EXPECT_EQ(split.Refusal(Messages(55, 65)), "the split has only the offsets [10, 60)");
  ProvenanceRange other = Messages(30, 40, {1, 0}, {2, 0});
  other.set_last_hash(1);
  EXPECT_EQ(split.Refusal(other),
            "the message at offset 39 differs from the earlier one at that offset");
  ProvenanceRange elsewhere = Messages(40, 50);
  elsewhere.set_last_offset(50);
  EXPECT_EQ(split.Refusal(elsewhere), "the block's last message is not in the block");
  ProvenanceRange empty = Messages(40, 50);
  empty.clear_last_offset();
  EXPECT_EQ(split.Refusal(empty), "it has records, but its block has no last message");
  empty.set_records(0);
  EXPECT_EQ(split.Refusal(empty), "");
  EXPECT_EQ(Of({Messages(10, 20)}).Refusal(Bounds(12, 20)),
            "it names the offsets [12, 20), but other offsets were consumed");
  EXPECT_EQ(ConsumedSplit().Refusal(Bounds(12, 10)), "it ends before it begins");
}

TEST(ConsumedSplit, IsReadBackAsItIs) {
  ProvenanceRange late = Messages(50, 60, {1, 2}, {3, 4});
  for (const ConsumedSplit& split :
       {Of({Records(0, 0, 4, 4), Records(5, 1, 3, 8), Records(5, 4, 6, 8), EndAfter(40)}),
        Of({Messages(10, 20), late, Bounds(10, 90)}), Of({Messages(10, 20)})}) {
    const SplitLedger state = StateOf(split);
    const auto read = ConsumedSplit::FromState(state);
    ASSERT_TRUE(read.ok()) << read.status() << state.DebugString();
    EXPECT_EQ(StateOf(*read).SerializeAsString(), state.SerializeAsString());
    EXPECT_EQ(read->rows(), split.rows());
    EXPECT_EQ(read->OpenBlocks(), split.OpenBlocks());
    EXPECT_EQ(read->DoneBlocks(0), split.DoneBlocks(0));
    EXPECT_EQ(read->last_message(), split.last_message());
  }
}

TEST(ConsumedSplit, AStateThatContradictsItselfIsDamage) {
  const SplitLedger good = StateOf(Of({Records(0, 0, 4, 4), Records(5, 1, 3, 8), EndAfter(40)}));
  EXPECT_THAT(ReadError(SplitLedger()), HasSubstr("whole or untouched"));
  SplitLedger state = good;
  state.mutable_blocks(0)->clear_from_to();
  EXPECT_THAT(ReadError(state), HasSubstr("a block without ranges or with half a range"));
  state = good;
  state.mutable_blocks(0)->add_lines(1);
  EXPECT_THAT(ReadError(state), HasSubstr("more or fewer lines than positions"));
  state = good;
  state.mutable_blocks(0)->add_from_to(3);
  state.mutable_blocks(0)->add_from_to(5);
  EXPECT_THAT(ReadError(state), HasSubstr("ranges that touch, overlap or leave their block"));
  state = good;
  *state.add_blocks() = state.blocks(0);
  EXPECT_THAT(ReadError(state), HasSubstr("has a block twice, or blocks out of order"));
  state = good;
  *state.add_blocks() = state.blocks(0);
  state.mutable_blocks(1)->set_block_end(9);
  state.mutable_blocks(1)->set_block(7);
  EXPECT_THAT(ReadError(state), HasSubstr("blocks of a file and of a topic partition"));
  state = good;
  state.mutable_blocks(0)->set_from_to(0, 0);
  state.mutable_blocks(0)->set_from_to(1, 8);
  EXPECT_THAT(ReadError(state), HasSubstr("a whole block among the partial ones"));
  state = good;
  state.mutable_blocks(0)->set_block(0);
  EXPECT_THAT(ReadError(state), HasSubstr("the whole block is consumed already"));
  state = good;
  state.set_rows(41);
  EXPECT_THAT(ReadError(state), HasSubstr("more records than its recorded end allows"));
  state = good;
  state.set_rows(2);
  EXPECT_THAT(ReadError(state), HasSubstr("does not match the sum of its ranges"));
}

TEST(ConsumedSplit, TwoJoinUnlessARecordIsInBoth) {
  ConsumedSplit split = Of({Records(0, 0, 4, 4), Records(2, 0, 3, 8)});
  EXPECT_EQ(split.Merge(Of({Records(1, 0, 4, 4), Records(2, 3, 8, 8), EndAfter(16)})), "");
  EXPECT_TRUE(split.is_done());
  EXPECT_THAT(split.DoneBlocks(0), ElementsAre(Offsets{0, 3}));
  ConsumedSplit whole = Of({Records(0, 0, 4, 4)});
  EXPECT_THAT(whole.Merge(Of({Records(0, 0, 4, 4)})), HasSubstr("trained twice"));
  ConsumedSplit open = Of({Records(0, 0, 2, 4)});
  EXPECT_THAT(open.Merge(Of({Records(0, 0, 4, 4)})), HasSubstr("trained twice"));
  ConsumedSplit open_too = Of({Records(0, 0, 2, 4)});
  EXPECT_EQ(open_too.Merge(Of({Records(0, 1, 3, 4)})), "records [1, 3) of block 0: trained twice");
  ConsumedSplit ended = Of({Records(0, 0, 4, 4), EndAfter(5)});
  EXPECT_EQ(ended.Merge(Of({Records(1, 0, 2, 2)})), "the split has only 5 records");
  ConsumedSplit file = Of({Records(0, 0, 4, 4)});
  EXPECT_THAT(file.Merge(Of({Messages(5, 9)})), HasSubstr("not both"));
}

TEST(ConsumedSplit, ErrorsCallARangeByItsPlaces) {
  EXPECT_EQ(NameOf(Records(2, 0, 5, 8)), "records [0, 5) of block 2");
  EXPECT_EQ(NameOf(Messages(10, 20, {1, 2}, {3, 4})),
            "slot 1 line 2 to slot 3 line 4 of the block of offsets [10, 20)");
  EXPECT_EQ(NameOf(EndAfter(3)), "the end");
}

}  // namespace
}  // namespace satrap
