#include "common/base/status_macros.h"

#include <memory>

#include "gtest/gtest.h"

namespace satrap {
namespace {

absl::StatusOr<int> Half(int x) {
  if (x % 2 != 0) return absl::InvalidArgumentError("odd");
  return x / 2;
}

absl::StatusOr<int> Quarter(int x) {
  ASSIGN_OR_RETURN(const int half, Half(x));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

absl::Status CheckEven(int x, bool* passed) {
  RETURN_IF_ERROR(Half(x).status());
  *passed = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<int>> MoveThrough() {
  ASSIGN_OR_RETURN(auto value, absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(3)));
  return value;
}

TEST(StatusMacrosTest, AssignsTheValue) { EXPECT_EQ(Quarter(12).value(), 3); }

TEST(StatusMacrosTest, ReturnsTheFirstError) {
  EXPECT_EQ(Quarter(3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
}

TEST(StatusMacrosTest, StopsAtTheError) {
  bool passed = false;
  EXPECT_FALSE(CheckEven(1, &passed).ok());
  EXPECT_FALSE(passed);
  EXPECT_TRUE(CheckEven(2, &passed).ok());
  EXPECT_TRUE(passed);
}

TEST(StatusMacrosTest, MovesWhatCannotBeCopied) { EXPECT_EQ(**MoveThrough(), 3); }

}  // namespace
}  // namespace satrap
