#include "deploy/coordinator/waiting_coordinator.h"

#include "common/rpc/header.h"
#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class WaitingCoordinatorTest : public CoordinatorFixture {
 protected:
  template <typename Header>
  static absl::StatusOr<rpc::Message> Ask(WaitingCoordinator* waiting, const rpc::Method& method,
                                          const Header& header) {
    absl::StatusOr<rpc::Message> answer = absl::UnknownError("not answered");
    waiting->Handle(method, rpc::MessageOf(header),
                    [&answer](absl::StatusOr<rpc::Message> told) { answer = std::move(told); });
    return answer;
  }
  absl::StatusOr<ClaimedGeneration> ClaimAs(const std::string& holder, uint64_t submission) {
    ClaimRequest request;
    request.job = job_;
    request.run_id = kRunId;
    request.writer = 77;
    request.submission = submission;
    request.holder = holder;
    return ClaimGeneration(request, &disk_);
  }
};

TEST_F(WaitingCoordinatorTest, WhoAsksACoordinatorOfAnEarlierSubmissionWaits) {
  BeginNewRunInPods();
  BeginInPods(2);
  const size_t entries = Log().number();
  const auto claimed = ClaimAs("", 1);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  ASSERT_TRUE(claimed->superseded);
  EXPECT_EQ(claimed->submission, 2u);
  EXPECT_EQ(Log().number(), entries) << "it claims nothing";
  WaitingCoordinator waiting(*claimed, [] { return 0; });
  RegisterAnswer registered;
  ASSERT_TRUE(
      registered.ParseFromString(Ask(&waiting, kRegister, RegisterOf(EMBEDDING_PS, 0))->header));
  EXPECT_TRUE(registered.wait());
  StatusAnswer status;
  ASSERT_TRUE(status.ParseFromString(Ask(&waiting, kStatus, StatusRequest())->header));
  EXPECT_EQ(status.state(), RESTARTING);
  EXPECT_EQ(status.ending().why(), Ending::SUPERSEDED);
  EXPECT_EQ(status.generation(), 2u);
  EXPECT_EQ(Ask(&waiting, kHeartbeat, HeartbeatOf(EMBEDDING_PS, 0)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(WaitingCoordinatorTest, ACoordinatorInAnotherPodMayClaimOnceItIsAskedForEightSeconds) {
  BeginNewRunInPods();
  ASSERT_TRUE(ClaimAs("pod-1", 1).ok());
  ASSERT_TRUE(ClaimAs("pod-2", 1).ok());
  const auto claimed = ClaimAs("pod-1", 1);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  ASSERT_TRUE(claimed->waits_to_be_asked);
  int64_t now_ms = 5000;
  WaitingCoordinator waiting(*claimed, [&now_ms] { return now_ms; });
  const auto ask = [&](int seconds) {
    for (int i = 0; i < seconds; ++i, now_ms += 1000) {
      RegisterAnswer answer;
      ASSERT_TRUE(
          answer.ParseFromString(Ask(&waiting, kRegister, RegisterOf(EMBEDDING_PS, 0))->header));
      EXPECT_TRUE(answer.wait());
      EXPECT_EQ(answer.why_wait(),
                "the coordinator of another pod has begun generation 3, so this one claims "
                "nothing until processes have asked it for 8 s");
    }
  };
  EXPECT_FALSE(waiting.MayClaim()) << "nobody has asked";
  ask(7);
  now_ms += 3000;
  ask(8);
  EXPECT_FALSE(waiting.MayClaim()) << "nobody had asked for a while, and now it is 7 s";
  ask(1);
  EXPECT_TRUE(waiting.MayClaim());
}

TEST_F(WaitingCoordinatorTest, ACoordinatorOfAnEarlierSubmissionNeverClaims) {
  BeginNewRunInPods();
  BeginInPods(2);
  int64_t now_ms = 0;
  WaitingCoordinator waiting(*ClaimAs("pod-1", 1), [&now_ms] { return now_ms; });
  for (int i = 0; i < 20; ++i, now_ms += 1000) {
    EXPECT_TRUE(Ask(&waiting, kRegister, RegisterOf(EMBEDDING_PS, 0)).ok());
  }
  EXPECT_FALSE(waiting.MayClaim());
}

}  // namespace
}  // namespace satrap
