#include "deploy/pod/restart_rule.h"

#include <csignal>
#include <cstdio>
#include <vector>

#include "common/role/ending.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;

constexpr int Exit(int code) { return code << 8; }

RoleEnd EndWith(int wait_status, bool before_ready) {
  RoleEnd end = EndOf(EMBEDDING_PS, 1, wait_status, "", 60000);
  end.ending.set_before_ready(before_ready);
  return end;
}

template <typename Restarts>
std::vector<int64_t> Pauses(Restarts* restarts, const RoleEnd& end, int times) {
  std::vector<int64_t> pauses;
  for (int i = 0; i < times; ++i) pauses.push_back(restarts->PauseMs(end));
  return pauses;
}

TEST(RoleRestartsTest, ARoleThatWasReadyIsStartedAgainAtOnce) {
  RoleRestarts restarts;
  for (const int status : {Exit(75), Exit(76), SIGKILL, SIGABRT}) {
    EXPECT_THAT(Pauses(&restarts, EndWith(status, false), 3), ElementsAre(0, 0, 0));
  }
}

TEST(RoleRestartsTest, PausesGrowWhileItEndsBeforeItIsReady) {
  RoleRestarts restarts;
  EXPECT_THAT(Pauses(&restarts, EndWith(Exit(75), true), 8),
              ElementsAre(0, 100, 200, 400, 800, 1600, 3200, 5000));
  EXPECT_EQ(restarts.PauseMs(EndWith(Exit(76), false)), 0);
  EXPECT_EQ(restarts.PauseMs(EndWith(SIGSEGV, true)), 0);
}

TEST(RoleRestartsTest, AnEndForGoodIsFollowedByAStartAllTheSame) {
  for (const int code : {0, 1, 77, 127}) {
    RoleRestarts restarts;
    EXPECT_THAT(Pauses(&restarts, EndWith(Exit(code), false), 5),
                ElementsAre(5000, 10000, 20000, 30000, 30000));
    EXPECT_EQ(restarts.PauseMs(EndWith(Exit(75), false)), 0);
    EXPECT_EQ(restarts.PauseMs(EndWith(Exit(code), false)), 5000);
  }
}

TEST(RoleRestartsTest, WhatTheMachineLacksNeedsItsPause) {
  RoleRestarts restarts;
  RoleEnd end = EndWith(Exit(75), false);
  end.ending.set_why(Ending::MEMBER_FAILED);
  end.ending.set_kind(Ending::NO_MEMORY);
  EXPECT_EQ(restarts.PauseMs(end), 5000);
}

TEST(EndOfTest, WithoutAnEndingTheExitAndTheLifeTell) {
  const RoleEnd killed = EndOf(NN_WORKER, 2, SIGKILL, "", 500);
  EXPECT_EQ(killed.ending.why(), Ending::MEMBER_LOST);
  EXPECT_EQ(killed.ending.text(), "nn_worker 2 was killed by signal 9 (Killed)");
  EXPECT_TRUE(killed.ending.before_ready());
  EXPECT_FALSE(killed.has_left);
  const RoleEnd failed = EndOf(NN_WORKER, 2, Exit(3), "", 10000);
  EXPECT_EQ(failed.ending.why(), Ending::MEMBER_FAILED);
  EXPECT_FALSE(failed.ending.before_ready());
}

TEST(EndOfTest, WhatWasLeftCounts) {
  const std::string path = testing::TempDir() + "/end_of_test.ending";
  Ending ending = EndingOf(Ending::MEMBER_LOST, EMBEDDING_PS, 0, "embedding_ps 0 is silent");
  ending.set_before_ready(true);
  LeaveEnding(path, ending);
  const RoleEnd end = EndOf(COORDINATOR, 0, Exit(75), path, 60000);
  EXPECT_TRUE(end.has_left);
  EXPECT_EQ(end.ending.text(), "embedding_ps 0 is silent");
  EXPECT_TRUE(end.ending.before_ready());
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

RoleEnd CoordinatorEnd(int code, Ending::Why why) {
  RoleEnd end;
  end.wait_status = Exit(code);
  end.ending = EndingOf(why, "so it ended");
  end.has_left = true;
  end.lived_ms = 60000;
  return end;
}

TEST(CoordinatorRestartsTest, ItHasThePausesOfTheLauncherUntilTheLogEndsTheRun) {
  CoordinatorRestarts restarts(/*max_restarts=*/3);
  const RoleEnd lost = CoordinatorEnd(75, Ending::MEMBER_LOST);
  EXPECT_EQ(restarts.PauseMs(lost, ""), 0);
  EXPECT_EQ(restarts.PauseMs(lost, ""), 1000);
  EXPECT_EQ(restarts.PauseMs(lost, ""), 2000);
  EXPECT_EQ(restarts.PauseMs(lost, ""), 5000) << "the next one finds no restart left, and says so";
}

TEST(CoordinatorRestartsTest, ACutBeginsTheCountAnew) {
  CoordinatorRestarts restarts(/*max_restarts=*/2);
  const RoleEnd lost = CoordinatorEnd(75, Ending::MEMBER_LOST);
  EXPECT_EQ(restarts.PauseMs(lost, ""), 0);
  EXPECT_EQ(restarts.PauseMs(lost, ""), 1000);
  EXPECT_EQ(restarts.PauseMs(lost, "cut_0001_000001"), 0);
  EXPECT_EQ(restarts.PauseMs(lost, "cut_0001_000001"), 1000);
}

TEST(CoordinatorRestartsTest, AChangeOfSizeAndAMoveAreNoFailures) {
  CoordinatorRestarts restarts(/*max_restarts=*/0);
  for (const Ending::Why why : {Ending::ASKED, Ending::MOVED, Ending::MOVED, Ending::ASKED}) {
    EXPECT_EQ(restarts.PauseMs(CoordinatorEnd(75, why), ""), 0);
  }
}

TEST(CoordinatorRestartsTest, ItTellsTheEndOfTheRunForAsLongAsSomebodyMayAsk) {
  for (const int code : {0, 1}) {
    CoordinatorRestarts restarts(/*max_restarts=*/0);
    RoleEnd ended = CoordinatorEnd(code, code == 0 ? Ending::ASKED : Ending::MEMBER_FAILED);
    ended.ending.set_kind(Ending::REFUSED);
    for (const int64_t pause_ms : {5000, 10000, 20000, 30000, 30000}) {
      EXPECT_EQ(restarts.PauseMs(ended, ""), pause_ms);
    }
  }
}

TEST(CoordinatorRestartsTest, SoItDoesAfterALossThatNoRestartWasLeftFor) {
  CoordinatorRestarts restarts(/*max_restarts=*/2);
  const RoleEnd ended = CoordinatorEnd(1, Ending::MEMBER_LOST);
  for (const int64_t pause_ms : {5000, 10000, 20000, 30000, 30000}) {
    EXPECT_EQ(restarts.PauseMs(ended, ""), pause_ms);
  }
}

TEST(CoordinatorRestartsTest, WhatARestartMayCureIsTriedAtOnce) {
  CoordinatorRestarts restarts(/*max_restarts=*/3);
  RoleEnd full = CoordinatorEnd(75, Ending::MEMBER_FAILED);
  full.ending.set_kind(Ending::PEER_AWAY);
  EXPECT_EQ(restarts.PauseMs(full, ""), 0);
}

}  // namespace
}  // namespace satrap
