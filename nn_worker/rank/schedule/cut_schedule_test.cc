#include "nn_worker/rank/schedule/cut_schedule.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int64_t kSecond = 1'000'000;

class CutScheduleTest : public testing::Test {
 protected:
  static CheckpointConfig Config(double every_seconds, int64_t every_steps) {
    CheckpointConfig config;
    config.set_every_seconds(every_seconds);
    config.set_every_steps(every_steps);
    return config;
  }
  static CutWish Wish(uint64_t number, bool leave = false) {
    CutWish wish;
    wish.set_number(number);
    wish.set_leave(leave);
    return wish;
  }
  // Begins the next cut at `step`.
  CutPlan Begin(CutSchedule* schedule, uint64_t step, int64_t now_us = 0) {
    CutPlan plan;
    plan.number = ++number_;
    plan.position.set_step(step);
    schedule->OnBegun(now_us, &plan);
    return plan;
  }
  void End(CutSchedule* schedule, bool committed = true, double seconds = 0) {
    CutOutcome outcome;
    outcome.committed = committed;
    outcome.seconds = seconds;
    schedule->OnEnded(number_, outcome);
  }
  uint64_t number_ = 0;
};

TEST_F(CutScheduleTest, ByStepsACutComesAfterTheStepThatReachesThem) {
  CutSchedule schedule(Config(0, 10), /*step=*/10);
  EXPECT_FALSE(schedule.IsDue(18, true, 0));
  EXPECT_FALSE(schedule.IsDue(19, false, 0));
  EXPECT_TRUE(schedule.IsDue(19, true, 0));
  EXPECT_TRUE(schedule.IsDue(20, false, 0));
  Begin(&schedule, 21);
  EXPECT_FALSE(schedule.IsDue(40, true, 0)) << "one is being written";
  End(&schedule);
  EXPECT_FALSE(schedule.IsDue(28, true, 0));
  EXPECT_TRUE(schedule.IsDue(30, true, 0));
}

TEST_F(CutScheduleTest, TheClockCountsFromTheLastBeginAndWaitsFourWritingTimes) {
  CutSchedule schedule(Config(10, 0), 0);
  schedule.Start(5 * kSecond);
  EXPECT_FALSE(schedule.IsDue(1, true, 14 * kSecond));
  EXPECT_TRUE(schedule.IsDue(1, true, 15 * kSecond));
  EXPECT_FALSE(schedule.IsDue(0, true, 15 * kSecond)) << "nothing has changed";
  Begin(&schedule, 1, 15 * kSecond);
  End(&schedule, true, /*seconds=*/3);
  EXPECT_FALSE(schedule.IsDue(2, true, 26 * kSecond));
  EXPECT_TRUE(schedule.IsDue(2, true, 27 * kSecond));
}

TEST_F(CutScheduleTest, AWishIsDueUntilACutIsCommittedThatBeganAfterIt) {
  CutSchedule schedule(Config(0, 0), 0);
  schedule.OnWish(Wish(2));
  EXPECT_TRUE(schedule.IsDue(0, false, 0));
  EXPECT_EQ(Begin(&schedule, 0).wish, 2u);
  schedule.OnWish(Wish(3));
  End(&schedule);
  EXPECT_TRUE(schedule.IsDue(0, false, 0));
  EXPECT_EQ(Begin(&schedule, 0).wish, 3u);
  End(&schedule, /*committed=*/false);
  EXPECT_TRUE(schedule.IsDue(0, false, 0));
  EXPECT_EQ(Begin(&schedule, 0).wish, 3u);
  End(&schedule);
  schedule.OnWish(Wish(3));
  EXPECT_FALSE(schedule.IsDue(0, false, 0));
  EXPECT_EQ(Begin(&schedule, 5).wish, 0u);
}

TEST_F(CutScheduleTest, AWishToLeaveIsNotForgottenForALaterWish) {
  CutSchedule schedule(Config(0, 0), 0);
  EXPECT_FALSE(Begin(&schedule, 0).leave);
  schedule.OnWish(Wish(1, /*leave=*/true));
  schedule.OnWish(Wish(2));
  End(&schedule);
  const CutPlan plan = Begin(&schedule, 0);
  EXPECT_TRUE(plan.leave);
  EXPECT_EQ(plan.wish, 2u);
}

TEST_F(CutScheduleTest, AWishToLeaveIsFulfilledByTheCutThatLeaves) {
  CutSchedule schedule(Config(0, 0), 0);
  schedule.OnWish(Wish(1, /*leave=*/true));
  EXPECT_TRUE(Begin(&schedule, 0).leave);
  End(&schedule, /*committed=*/false);
  EXPECT_TRUE(Begin(&schedule, 0).leave) << "the first was abandoned";
  End(&schedule);
  EXPECT_FALSE(Begin(&schedule, 5).leave);
}

TEST_F(CutScheduleTest, TheEndOfAnEarlierCutSaysNothingOfTheOneThatIsWritten) {
  CutSchedule schedule(Config(0, 0), 0);
  Begin(&schedule, 0);
  schedule.OnWish(Wish(1));
  Begin(&schedule, 3);  // of a new best, while the first is being written
  CutOutcome outcome;
  outcome.committed = true;
  schedule.OnEnded(number_ - 1, outcome);
  EXPECT_FALSE(schedule.IsDue(4, true, 0)) << "one is being written";
  End(&schedule, /*committed=*/false);
  EXPECT_TRUE(schedule.IsDue(4, true, 0)) << "the wish is not fulfilled";
}

}  // namespace
}  // namespace satrap
