#include "deploy/coordinator/splits/split_leases.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(SplitLeases, DealsEachSplitOnceAndInOrder) {
  SplitLeases leases;
  EXPECT_EQ(**leases.Lease(0, 3), 0u);
  EXPECT_EQ(**leases.Lease(0, 3), 1u);
  EXPECT_EQ(**leases.Lease(0, 3), 2u);
  EXPECT_FALSE(leases.Lease(0, 3)->has_value());
  EXPECT_FALSE(leases.Lease(0, 3)->has_value());
}

TEST(SplitLeases, EpochsAreDealtApart) {
  SplitLeases leases;
  EXPECT_EQ(**leases.Lease(0, 2), 0u);
  EXPECT_EQ(**leases.Lease(1, 2), 0u);
  EXPECT_EQ(**leases.Lease(0, 2), 1u);
  EXPECT_FALSE(leases.Lease(0, 2)->has_value());
  EXPECT_EQ(**leases.Lease(1, 2), 1u);
}

TEST(SplitLeases, LoadersThatCountOtherSplitsAreRefused) {
  SplitLeases leases;
  EXPECT_EQ(**leases.Lease(0, 5), 0u);
  EXPECT_EQ(leases.Lease(0, 4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(**leases.Lease(0, 5), 1u) << "the refused call took nothing";
}

TEST(SplitLeases, AnEpochWithoutSplitsEndsAtOnce) {
  SplitLeases leases;
  EXPECT_FALSE(leases.Lease(0, 0)->has_value());
}

TEST(SplitLeases, SplitsThatTheLedgerHasDoneAreLeftOut) {
  LedgerState state;
  EpochLedger* epoch = state.add_epochs();
  epoch->set_epoch(1);
  epoch->set_rows(9);
  for (const uint32_t split : {0, 0, 2, 3}) epoch->add_done_splits(split);
  const absl::StatusOr<Ledger> consumed = Ledger::FromState(state);
  ASSERT_TRUE(consumed.ok()) << consumed.status();
  SplitLeases leases(*consumed);
  EXPECT_EQ(**leases.Lease(1, 5), 1u);
  EXPECT_EQ(**leases.Lease(1, 5), 4u);
  EXPECT_FALSE(leases.Lease(1, 5)->has_value());
  EXPECT_EQ(**leases.Lease(2, 5), 0u) << "of another epoch";
}

}  // namespace
}  // namespace satrap
