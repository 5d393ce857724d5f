#include "nn_worker/backend/device_tables.h"

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

  std::vector<std::unique_ptr<char[]>> blocks_;
  int copies_ = 0;
  DeviceMeter meter_;
  DeviceTables tables_{[this](int64_t bytes) -> absl::StatusOr<void*> {
                         blocks_.push_back(std::make_unique<char[]>(bytes));
                         return blocks_.back().get();
                       },
                       [this](const void* host, void* device, int64_t bytes) {
                         ++copies_;
                         std::memcpy(device, host, bytes);
                       },
                       &meter_};
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

TEST_F(DeviceTablesTest, SeveralListsAreOneTable) {
  const auto [chars, numbers] =
      tables_.Tables(std::vector<char>{'x', 'y', 'z'}, std::vector<int64_t>{7, 8});
  EXPECT_EQ(copies_, 1);
  EXPECT_EQ(chars[2], 'z');
  EXPECT_EQ(numbers[1], 8);
}

}  // namespace
}  // namespace satrap
