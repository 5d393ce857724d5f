#include "deploy/pod/members_wait.h"

#include <csignal>
#include <vector>

#include "common/refusal/refusal.h"
#include "common/role/ending.h"
#include "deploy/launcher/testing/logged_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;

using MembersWaitTest = LoggedRunTest;

TEST_F(MembersWaitTest, WaitsForTheEndAndThenUntilAllAreTold) {
  Append("generation { generation: 1 submission: 1 }");
  std::vector<int64_t> waits;
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 1,
                               [&](int64_t timeout_ms) {
                                 waits.push_back(timeout_ms);
                                 if (waits.size() == 2) {
                                   Append("end { state: STOPPED submission: 1 }");
                                 }
                                 return 0;
                               }),
            0);
  EXPECT_THAT(waits, ElementsAre(1000, 1000, 5000));
}

TEST_F(MembersWaitTest, ACoordinatorThatCannotBeginEndsTheWaitForItsSubmissionAlone) {
  const auto refuse = [this](uint64_t submission) {
    LeaveRefusal(dir_, submission,
                 EndingOf(Ending::MEMBER_FAILED, COORDINATOR, 0, "no hard links"));
  };
  int waits = 0;
  const auto wait = [&](int64_t) {
    if (++waits == 1) refuse(1);
    return waits == 4 ? SIGTERM : 0;
  };
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 1, wait), 0);
  EXPECT_EQ(waits, 2) << "the second until all are told";
  waits = 0;
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 2, wait), 128 + SIGTERM);
}

TEST_F(MembersWaitTest, WhatAnEarlierResumeHasLeftUnderTheSameNumberDoesNotCount) {
  const auto refuse = [this](const std::string& text) {
    LeaveRefusal(dir_, 2, EndingOf(Ending::MEMBER_FAILED, COORDINATOR, 0, text));
  };
  refuse("a damaged cut");
  int waits = 0;
  const auto wait = [&](int64_t) {
    ++waits;
    if (waits == 2) RemoveRefusal(dir_, 2);
    if (waits == 3) refuse("a damaged cut");
    return 0;
  };
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 2, wait), 0);
  EXPECT_EQ(waits, 4);
}

TEST_F(MembersWaitTest, ASignalEndsTheWaitSoThatAnotherPodGoesOn) {
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 1, [](int64_t) { return SIGTERM; }), 128 + SIGTERM);
  Append("generation { generation: 1 submission: 1 }");
  Append("end { submission: 1 }");
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 1, [](int64_t) { return SIGTERM; }), 128 + SIGTERM);
}

}  // namespace
}  // namespace satrap
