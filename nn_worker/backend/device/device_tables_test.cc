#include "nn_worker/backend/device/device_tables.h"

#include <cstring>
#include <memory>

#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int64_t kBlock = 1 << 18;

class DeviceTablesTest : public testing::Test {
 protected:
  const char* Find(char fill, int64_t bytes) {
    return tables_.Table(std::vector<char>(bytes, fill));
  }

  // Requests the lists of a step: `count` lists of kBlock / 8 bytes each. Returns how many were
  // copied.
  int Step(int count) {
    const int before = copies_;
    for (int i = 0; i < count; ++i) {
      std::vector<int> list(kBlock / 8 / sizeof(int), i);
      EXPECT_EQ(*network_tables_.Table(list), i);
    }
    return copies_ - before;
  }
  DeviceTables NewTables(ListKind kind) {
    return DeviceTables(
        kind,
        [this](int64_t bytes) -> absl::StatusOr<void*> {
          if (full_) return absl::ResourceExhaustedError("full");
          blocks_.push_back(std::make_unique<char[]>(bytes));
          return blocks_.back().get();
        },
        [this](const void* host, void* device, int64_t bytes) {
          ++copies_;
          std::memcpy(device, host, bytes);
        },
        &meter_);
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  int copies_ = 0;
  DeviceMeter meter_;
  bool full_ = false;
  DeviceTables tables_ = NewTables(ListKind::kPart);
  DeviceTables network_tables_ = NewTables(ListKind::kNetwork);
};

TEST_F(DeviceTablesTest, TheSameBytesAreCopiedOnce) {
  const char* const first = Find('a', 100);
  EXPECT_NE(Find('b', 100), first);
  EXPECT_EQ(Find('a', 100), first);
  EXPECT_EQ(first[99], 'a');
  EXPECT_EQ(copies_, 2);
  EXPECT_EQ(Find('c', 0), nullptr);
  EXPECT_EQ(meter_.Read().list_bytes, kBlock);
}

TEST_F(DeviceTablesTest, AFullBlockIsWrittenOverInANewEpoch) {
  const char* const first = Find('a', kBlock / 8);
  for (char fill = 'b'; fill <= 'h'; ++fill) Find(fill, kBlock / 8);
  EXPECT_EQ(tables_.epoch(), 0);
  EXPECT_EQ(Find('i', kBlock / 8), first);
  EXPECT_EQ(tables_.epoch(), 1);
  Find('a', kBlock / 8);
  EXPECT_EQ(copies_, 10) << "it was written over, and so is copied again";
  EXPECT_EQ(tables_.epoch(), 1);
  EXPECT_EQ(blocks_.size(), 1u);
}

TEST_F(DeviceTablesTest, ATableThatIsTooLargeGetsABlockAndANewEpoch) {
  const char* const first = Find('a', 64);
  EXPECT_NE(Find('b', 2 * kBlock), first);
  EXPECT_EQ(blocks_.size(), 2u);
  EXPECT_EQ(tables_.epoch(), 1);
  EXPECT_EQ(first[0], 'a') << "the old block stays for what still reads it";
}

TEST_F(DeviceTablesTest, ListsOfANetworkThatFillABlockGetAnotherAndStay) {
  EXPECT_EQ(Step(20), 20);
  EXPECT_EQ(Step(20), 0) << "all were found again";
  EXPECT_EQ(network_tables_.epoch(), 0);
  EXPECT_EQ(meter_.Read().network_list_bytes, 3 * kBlock);
  EXPECT_EQ(meter_.Read().list_bytes, 3 * kBlock);
}

// A rehearsal (nn_worker/trainer/device_rehearsal.h) allocates memory for lists step by step. A
// rank then reserves the same amount in one block, which must be enough.
TEST_F(DeviceTablesTest, WhatListsOfANetworkHaveTakenIsEnoughInOneBlock) {
  Step(20);
  DeviceTables rank = NewTables(ListKind::kNetwork);
  ASSERT_TRUE(rank.Reserve(meter_.Read().network_list_bytes).ok());
  full_ = true;
  for (int step = 0; step < 2; ++step) {
    for (int i = 0; i < 20; ++i) rank.Table(std::vector<char>(kBlock / 8, static_cast<char>(i)));
  }
  EXPECT_EQ(rank.epoch(), 0);
}

TEST_F(DeviceTablesTest, ListsOfANetworkAreWrittenOverWhereThereIsNoMoreMemory) {
  Step(8);
  full_ = true;
  EXPECT_EQ(Step(9), 1);
  EXPECT_EQ(network_tables_.epoch(), 1);
  full_ = false;
  EXPECT_EQ(Step(9), 9) << "nobody asks again";
  EXPECT_EQ(blocks_.size(), 1u);
}

TEST_F(DeviceTablesTest, ListsOfANetworkTakeNoMoreThanTheirBound) {
  for (int i = 0; i < 4 * DeviceTables::kMostBytes / kBlock; ++i) {
    network_tables_.Table(std::vector<int>(kBlock / sizeof(int), i));
  }
  EXPECT_GT(network_tables_.epoch(), 0);
  EXPECT_LE(meter_.Read().list_bytes, DeviceTables::kMostBytes);
  EXPECT_GT(meter_.Read().list_bytes, DeviceTables::kMostBytes / 2);
}

TEST_F(DeviceTablesTest, WhatIsReservedIsNotTakenLater) {
  ASSERT_TRUE(tables_.Reserve(4 * kBlock).ok());
  EXPECT_TRUE(tables_.Reserve(kBlock).ok());
  full_ = true;
  EXPECT_NE(Find('a', 3 * kBlock), nullptr);
  EXPECT_NE(Find('b', 4 * kBlock), nullptr);
  EXPECT_EQ(blocks_.size(), 1u);
  EXPECT_EQ(meter_.Read().part_list_bytes, 4 * kBlock);
  EXPECT_EQ(meter_.Read().network_list_bytes, 0);
}

TEST_F(DeviceTablesTest, AReservationThatIsRefusedIsAnError) {
  full_ = true;
  EXPECT_EQ(tables_.Reserve(1).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(DeviceTablesTest, SeveralListsAreOneTable) {
  const auto [chars, numbers] =
      tables_.Tables(std::vector<char>{'x', 'y', 'z'}, std::vector<int64_t>{7, 8});
  EXPECT_EQ(copies_, 1);
  EXPECT_EQ(chars[2], 'z');
  EXPECT_EQ(numbers[1], 8);
}

}  // namespace
}  // namespace satrap
