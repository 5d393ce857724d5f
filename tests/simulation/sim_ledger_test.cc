#include "tests/simulation/sim_ledger.h"

#include <string>
#include <vector>

#include "common/checkpoint/ledger/ledger.h"
#include "gtest/gtest.h"

namespace satrap::simulation {
namespace {

WorldShape Shape() {
  WorldShape shape;
  shape.seed = 3;
  shape.shuffle_rows = 4;
  shape.split_rows = {{10, 0, 5}, {}, {}};
  return shape;
}

ProvenanceRange Range(uint32_t split, uint64_t block, uint32_t from, uint32_t to, uint32_t rows) {
  ProvenanceRange range;
  range.set_split(split);
  range.set_block(block);
  range.set_from(from);
  range.set_to(to);
  range.set_block_rows(rows);
  return range;
}

uint64_t IdAt(const WorldShape& shape, int split, uint32_t epoch, int position) {
  return MakeSample(shape, TRAIN_STREAM, split,
                    RowOrder(shape, TRAIN_STREAM, split, epoch)[position])
      .id;
}

class SimLedger : public testing::Test {
 protected:
  void Check(const Ledger& ledger) { Check(ledger.ToState()); }
  void Check(const LedgerState& state) {
    violations_.clear();
    CheckLedger(shape_, state, seen_, [this](std::string what) { violations_.push_back(what); });
  }

  const WorldShape shape_ = Shape();
  SimTraining::Seen seen_;
  std::vector<std::string> violations_;
};

TEST_F(SimLedger, HoldsTheSamplesOfRangesBlocksAndSplits) {
  Ledger ledger;
  // The ranges are records 1 and 2 of block 1, all of block 0, and all of split 2 with its end.
  ASSERT_TRUE(ledger.Add(0, Range(0, 1, 1, 3, 4)).ok());
  ASSERT_TRUE(ledger.Add(0, Range(0, 0, 0, 4, 4)).ok());
  ASSERT_TRUE(ledger.Add(0, Range(2, 0, 0, 4, 4)).ok());
  ASSERT_TRUE(ledger.Add(0, Range(2, 1, 0, 1, 1)).ok());
  ProvenanceRange end;
  end.set_split(2);
  end.set_ends_split(true);
  end.set_split_rows(5);
  ASSERT_TRUE(ledger.Add(0, end).ok());
  for (const int position : {0, 1, 2, 3, 5, 6}) seen_[{0, 0}][IdAt(shape_, 0, 0, position)] = 1;
  for (int position = 0; position < 5; ++position) seen_[{0, 0}][IdAt(shape_, 2, 0, position)] = 1;
  Check(ledger);
  EXPECT_TRUE(violations_.empty()) << violations_[0];
  seen_[{0, 0}][IdAt(shape_, 0, 0, 7)] = 1;
  Check(ledger);
  EXPECT_FALSE(violations_.empty()) << "a sample that was used is missing";
}

TEST_F(SimLedger, SeesASampleTooMuchAndOneThatCameTwice) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(1, Range(0, 0, 0, 2, 4)).ok());
  seen_[{0, 1}][IdAt(shape_, 0, 1, 0)] = 1;
  Check(ledger);
  EXPECT_FALSE(violations_.empty());
  seen_[{0, 1}][IdAt(shape_, 0, 1, 1)] = 1;
  Check(ledger);
  EXPECT_TRUE(violations_.empty()) << violations_[0];
  seen_[{0, 1}][IdAt(shape_, 0, 1, 1)] = 2;
  Check(ledger);
  EXPECT_FALSE(violations_.empty());
}

TEST_F(SimLedger, SeesAnEpochThatIsMissing) {
  seen_[{0, 0}][IdAt(shape_, 0, 0, 0)] = 1;
  Check(LedgerState());
  EXPECT_FALSE(violations_.empty());
}

TEST_F(SimLedger, SeesRecordsThatDoNotExist) {
  LedgerState state;
  EpochLedger* epoch = state.add_epochs();
  epoch->set_epoch(0);
  epoch->set_rows(1);
  SplitLedger* split = epoch->add_splits();
  split->set_split(2);
  split->set_rows(1);
  BlockLedger* block = split->add_blocks();
  block->set_block(1);
  block->add_from_to(1);
  block->add_from_to(2);
  Check(state);
  EXPECT_FALSE(violations_.empty());
}

TEST_F(SimLedger, TakesTheTotalsOfAnEpochThatIsOver) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(0, Range(0, 0, 0, 1, 4)).ok());
  ledger.CloseEpochsBefore(1);
  seen_[{0, 0}][IdAt(shape_, 0, 0, 0)] = 1;
  Check(ledger);
  EXPECT_TRUE(violations_.empty()) << violations_[0];
  seen_[{0, 0}][IdAt(shape_, 0, 0, 1)] = 1;
  Check(ledger);
  EXPECT_FALSE(violations_.empty());
}

}  // namespace
}  // namespace satrap::simulation
