#include "deploy/coordinator/refusing_coordinator.h"

#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/rpc/header.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RefusingCoordinatorTest, WhoAsksIsToldWhyAndWhoRegistersWaits) {
  const Ending why =
      FailureOf(COORDINATOR, 0, absl::FailedPreconditionError("/runs/a has no hard links"));
  RefusingCoordinator refusing(/*submission=*/3, why);
  const auto call = [&refusing](const rpc::Method& method, const auto& header) {
    absl::StatusOr<rpc::Message> answer = absl::UnknownError("not answered");
    refusing.Handle(method, rpc::MessageOf(header),
                    [&answer](absl::StatusOr<rpc::Message> told) { answer = std::move(told); });
    return answer;
  };
  StatusRequest request;
  request.set_run_id(7);
  StatusAnswer status;
  ASSERT_TRUE(status.ParseFromString(call(kStatus, request)->header));
  EXPECT_EQ(status.state(), FAILED);
  EXPECT_EQ(status.submission(), 3u);
  EXPECT_EQ(status.ending().text(), why.text());
  EXPECT_FALSE(status.has_run_id());
  RegisterAnswer registered;
  ASSERT_TRUE(registered.ParseFromString(call(kRegister, RegisterRequest())->header));
  EXPECT_TRUE(registered.wait());
  EXPECT_EQ(registered.why_wait(), why.text());
  const absl::Status wish = call(kWish, WishRequest()).status();
  EXPECT_EQ(wish.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(wish.message(), why.text());
}

}  // namespace
}  // namespace satrap
