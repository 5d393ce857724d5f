#include "nn_worker/rank/failure_latch.h"

#include <string>
#include <vector>

#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class FailureLatchTest : public testing::Test {
 protected:
  ManualExecutor executor_;
  std::vector<absl::Status> told_;
  FailureLatch latch_{&executor_, [this](absl::Status status) { told_.push_back(status); }};
};

TEST_F(FailureLatchTest, TellsTheFirstErrorOnly) {
  EXPECT_FALSE(latch_.failed());
  latch_.Fail(absl::AbortedError("one"));
  latch_.Fail(absl::InternalError("two"));
  EXPECT_TRUE(latch_.failed());
  EXPECT_EQ(told_, std::vector<absl::Status>{absl::AbortedError("one")});
}

TEST_F(FailureLatchTest, ACallbackRunsOnTheExecutorAndNotWhereItIsCalled) {
  int ran = 0;
  std::string got;
  latch_.WhenOk([&] { ++ran; })(absl::OkStatus());
  latch_.WhenGood<std::string>([&](const std::string& value) { got = value; })("value");
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(got, "");
  executor_.RunReady();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(got, "value");
}

TEST_F(FailureLatchTest, AnErrorFailsAndNoCallbackRunsAfterIt) {
  int ran = 0;
  latch_.WhenOk([&] { ++ran; })(absl::AbortedError("one"));
  latch_.WhenOk([&] { ++ran; })(absl::OkStatus());
  latch_.WhenGood<int>([&](int) { ++ran; })(5);
  latch_.WhenGood<int>([&](int) { ++ran; })(absl::InternalError("two"));
  executor_.RunReady();
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(told_, std::vector<absl::Status>{absl::AbortedError("one")});
}

}  // namespace
}  // namespace satrap
