#include "deploy/story/members_wait.h"

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/refusal/refusal.h"
#include "common/role/ending.h"
#include "deploy/cli/testing/fake_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;

class MembersWaitTest : public FakeRunTest {
 protected:
  int Await(uint64_t submission, const std::function<int(int64_t timeout_ms)>& wait) {
    return AwaitSubmissionEnd(dir_, submission, coordinator(), wait);
  }
  void Refuse(uint64_t submission) {
    LeaveRefusal(dir_, submission,
                 EndingOf(Ending::MEMBER_FAILED, COORDINATOR, 0, "no hard links"));
  }
};

TEST_F(MembersWaitTest, WaitsForTheEndAndThenUntilAllAreTold) {
  Append("generation { generation: 1 submission: 1 }");
  std::vector<int64_t> waits;
  EXPECT_EQ(Await(1,
                  [&](int64_t timeout_ms) {
                    waits.push_back(timeout_ms);
                    if (waits.size() == 2) Append("end { state: STOPPED submission: 1 }");
                    return 0;
                  }),
            0);
  EXPECT_THAT(waits, ElementsAre(1000, 1000, 5000));
}

TEST_F(MembersWaitTest, ACoordinatorThatCannotBeginEndsTheWaitForItsSubmissionAlone) {
  int waits = 0;
  const auto wait = [&](int64_t) {
    if (++waits == 1) Refuse(1);
    return waits == 4 ? SIGTERM : 0;
  };
  EXPECT_EQ(Await(1, wait), 0);
  EXPECT_EQ(waits, 2) << "the second until all are told";
  waits = 0;
  EXPECT_EQ(Await(2, wait), 128 + SIGTERM);
}

TEST_F(MembersWaitTest, ARefusalThatNoFolderTakesIsHeardFromTheCoordinator) {
  Script({"state: STARTING generation: 1 submission: 1", "state: FAILED submission: 2",
          "state: FAILED generation: 1 submission: 1", "state: FAILED submission: 1"});
  int waits = 0;
  EXPECT_EQ(Await(1,
                  [&](int64_t) {
                    ++waits;
                    return 0;
                  }),
            0);
  EXPECT_EQ(waits, 4) << "neither another submission's nor one that has begun counts";
  EXPECT_EQ(StatusCalls(), 4);
}

TEST_F(MembersWaitTest, ARunThatHasBegunIsNotEndedByACoordinatorThatDoesNotSeeItsLog) {
  Append("generation { generation: 1 submission: 1 }");
  Script({"state: FAILED submission: 1"});
  int waits = 0;
  EXPECT_EQ(Await(1, [&](int64_t) { return ++waits == 3 ? SIGTERM : 0; }), 128 + SIGTERM);
  EXPECT_EQ(StatusCalls(), 0);
}

TEST_F(MembersWaitTest, WhatAnEarlierResumeHasLeftUnderTheSameNumberDoesNotCount) {
  Refuse(2);
  int waits = 0;
  const auto wait = [&](int64_t) {
    ++waits;
    if (waits == 2) RemoveRefusal(dir_, 2);
    if (waits == 3) Refuse(2);
    return 0;
  };
  EXPECT_EQ(Await(2, wait), 0);
  EXPECT_EQ(waits, 4);
}

TEST_F(MembersWaitTest, ASignalEndsTheWaitSoThatAnotherPodGoesOn) {
  EXPECT_EQ(Await(1, [](int64_t) { return SIGTERM; }), 128 + SIGTERM);
  Append("generation { generation: 1 submission: 1 }");
  Append("end { submission: 1 }");
  EXPECT_EQ(Await(1, [](int64_t) { return SIGTERM; }), 128 + SIGTERM);
}

}  // namespace
}  // namespace satrap
