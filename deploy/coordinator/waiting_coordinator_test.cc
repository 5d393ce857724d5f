#include "deploy/coordinator/waiting_coordinator.h"

#include "common/rpc/header.h"
#include "deploy/coordinator/coordinator_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class WaitingCoordinatorTest : public CoordinatorFixture {};

TEST_F(WaitingCoordinatorTest, WhoAsksACoordinatorOfAnEarlierSubmissionWaits) {
  BeginNewRunInPods();
  BeginInPods(2);
  const size_t entries = Log().number();
  ClaimRequest request;
  request.job = job_;
  request.run_id = kRunId;
  request.writer = 77;
  request.submission = 1;
  const auto claimed = ClaimGeneration(request, &disk_);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  ASSERT_TRUE(claimed->superseded);
  EXPECT_EQ(claimed->submission, 2u);
  EXPECT_EQ(Log().number(), entries) << "it claims nothing";
  WaitingCoordinator waiting(*claimed);
  const auto call = [&waiting](const rpc::Method& method, const auto& header) {
    absl::StatusOr<rpc::Message> answer = absl::UnknownError("not answered");
    waiting.Handle(method, rpc::MessageOf(header),
                   [&answer](absl::StatusOr<rpc::Message> told) { answer = std::move(told); });
    return answer;
  };
  RegisterAnswer registered;
  ASSERT_TRUE(registered.ParseFromString(call(kRegister, RegisterOf(EMBEDDING_PS, 0))->header));
  EXPECT_TRUE(registered.wait());
  StatusAnswer status;
  ASSERT_TRUE(status.ParseFromString(call(kStatus, StatusRequest())->header));
  EXPECT_EQ(status.state(), RESTARTING);
  EXPECT_EQ(status.ending().why(), Ending::SUPERSEDED);
  EXPECT_EQ(status.generation(), 2u);
  EXPECT_EQ(call(kHeartbeat, HeartbeatOf(EMBEDDING_PS, 0)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace satrap
