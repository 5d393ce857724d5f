#include "common/rpc/lost_call.h"

#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

TEST(LostCall, IsOneWithoutAnAnswer) {
  EXPECT_TRUE(IsLost(absl::UnavailableError("no connection")));
  EXPECT_TRUE(IsLost(absl::DeadlineExceededError("no answer")));
}

TEST(LostCall, IsNoneThatThePeerHasAnswered) {
  EXPECT_FALSE(IsLost(absl::OkStatus()));
  for (const absl::StatusCode code :
       {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kInternal,
        absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
        absl::StatusCode::kCancelled, absl::StatusCode::kAborted}) {
    EXPECT_FALSE(IsLost(absl::Status(code, "refused"))) << code;
  }
}

}  // namespace
}  // namespace satrap::rpc
