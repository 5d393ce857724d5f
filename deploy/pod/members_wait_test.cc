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
  LeaveRefusal(dir_, 1, EndingOf(Ending::MEMBER_FAILED, COORDINATOR, 0, "no hard links"));
  int waits = 0;
  const auto wait = [&waits](int64_t) { return ++waits == 3 ? SIGTERM : 0; };
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 1, wait), 0);
  EXPECT_EQ(waits, 1) << "only until all are told";
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 2, wait), 128 + SIGTERM);
  RemoveRefusal(dir_, 1);
  waits = 2;
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 1, wait), 128 + SIGTERM);
}

TEST_F(MembersWaitTest, ASignalEndsTheWaitSoThatAnotherPodGoesOn) {
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 1, [](int64_t) { return SIGTERM; }), 128 + SIGTERM);
  Append("generation { generation: 1 submission: 1 }");
  Append("end { submission: 1 }");
  EXPECT_EQ(AwaitSubmissionEnd(dir_, 1, [](int64_t) { return SIGTERM; }), 128 + SIGTERM);
}

}  // namespace
}  // namespace satrap
