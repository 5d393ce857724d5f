#include "deploy/coordinator/members/attendance.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int64_t kSecondUs = 1000000;

TEST(Attendance, AGenerationIsOverdueWhenTheLimitIsOverAndBeginsAnewWithEachFullHouse) {
  Attendance attendance(0, 0, 60 * kSecondUs);
  attendance.Note(false, 60 * kSecondUs);
  EXPECT_FALSE(attendance.IsOverdue(60 * kSecondUs));
  EXPECT_TRUE(attendance.IsOverdue(60 * kSecondUs + 1));
  attendance.Note(true, 70 * kSecondUs);
  attendance.Note(false, 130 * kSecondUs);
  EXPECT_FALSE(attendance.IsOverdue(130 * kSecondUs));
  EXPECT_TRUE(attendance.IsOverdue(130 * kSecondUs + 1));
}

TEST(Attendance, TheTimeCountsOverGenerationsButWhoIsThereMayCome) {
  const Attendance early(0, 50 * kSecondUs, 60 * kSecondUs);
  EXPECT_FALSE(early.IsOverdue(10 * kSecondUs));
  EXPECT_TRUE(early.IsOverdue(10 * kSecondUs + 1));
  const Attendance late(0, 3600 * kSecondUs, 60 * kSecondUs);
  EXPECT_FALSE(late.IsOverdue(Attendance::kComeUs));
  EXPECT_TRUE(late.IsOverdue(Attendance::kComeUs + 1));
  const Attendance hurried(0, 3600 * kSecondUs, kSecondUs);
  EXPECT_TRUE(hurried.IsOverdue(kSecondUs + 1));
}

TEST(Attendance, IsCompleteOnceAllHaveBeenThereForAWhile) {
  Attendance attendance(0, 0, 60 * kSecondUs);
  attendance.Note(false, 10 * kSecondUs);
  attendance.Note(true, 11 * kSecondUs);
  EXPECT_FALSE(attendance.IsComplete(14 * kSecondUs));
  attendance.Note(true, 15 * kSecondUs);
  EXPECT_TRUE(attendance.IsComplete(15 * kSecondUs));
  attendance.Note(false, 16 * kSecondUs);
  EXPECT_FALSE(attendance.IsComplete(16 * kSecondUs));
}

}  // namespace
}  // namespace satrap
