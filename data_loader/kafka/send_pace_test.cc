#include "data_loader/kafka/send_pace.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(SendPace, SpreadsMessagesEvenlyFromTheBegin) {
  const SendPace pace(/*per_second=*/4);
  EXPECT_EQ(pace.UsUntil(0, pace.begin_us()), 0);
  EXPECT_EQ(pace.UsUntil(1, pace.begin_us()), 250000);
  EXPECT_EQ(pace.UsUntil(8, pace.begin_us() + 1500000), 500000);
}

TEST(SendPace, MakesUpForAPause) {
  const SendPace pace(/*per_second=*/1000);
  const int64_t after_pause_us = pace.begin_us() + 60000000;
  EXPECT_LE(pace.UsUntil(59999, after_pause_us), 0) << "all of the pause's messages are due";
  EXPECT_GT(pace.UsUntil(60001, after_pause_us), 0);
}

TEST(SendPace, WithoutARateKeepsNobodyWaiting) {
  const SendPace pace(/*per_second=*/0);
  EXPECT_EQ(pace.UsUntil(1000000000, pace.begin_us()), 0);
}

}  // namespace
}  // namespace satrap
