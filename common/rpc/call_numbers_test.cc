#include "common/rpc/call_numbers.h"

#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

TEST(CallNumbersTest, CountsFromOne) {
  CallNumbers numbers;
  EXPECT_EQ(numbers.oldest_open(), 1u);
  EXPECT_EQ(numbers.Begin(), 1u);
  EXPECT_EQ(numbers.Begin(), 2u);
  EXPECT_EQ(numbers.num_open(), 2u);
}

TEST(CallNumbersTest, OldestOpenWaitsForTheOldest) {
  CallNumbers numbers;
  for (int i = 0; i < 3; ++i) numbers.Begin();
  numbers.End(2);
  EXPECT_EQ(numbers.oldest_open(), 1u);
  numbers.End(1);
  EXPECT_EQ(numbers.oldest_open(), 3u);
  numbers.End(3);
  EXPECT_EQ(numbers.oldest_open(), 4u);
  EXPECT_EQ(numbers.Begin(), 4u);
  EXPECT_EQ(numbers.oldest_open(), 4u);
}

TEST(CallNumbersDeathTest, RefusesToEndWhatIsNotOpen) {
  CallNumbers numbers;
  EXPECT_DEATH(numbers.End(1), "call 1 is not open");
}

}  // namespace
}  // namespace satrap::rpc
