#include "common/refusal/refusal.h"

#include <filesystem>
#include <string>

#include "absl/types/optional.h"
#include "common/role/ending.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RefusalTest, IsReadForItsOwnSubmissionUntilItIsTakenBack) {
  const std::string dir = ::testing::TempDir() + "/run";
  std::filesystem::create_directories(dir);
  EXPECT_FALSE(RefusalOf(dir, 2).has_value());
  LeaveRefusal(dir, 2, EndingOf(Ending::MEMBER_FAILED, COORDINATOR, 0, "no hard links"));
  const absl::optional<Ending> left = RefusalOf(dir, 2);
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->text(), "no hard links");
  EXPECT_TRUE(IsOf(*left, COORDINATOR, 0));
  EXPECT_FALSE(RefusalOf(dir, 1).has_value()) << "of another submission";
  RemoveRefusal(dir, 1);
  EXPECT_TRUE(RefusalOf(dir, 2).has_value());
  RemoveRefusal(dir, 2);
  EXPECT_FALSE(RefusalOf(dir, 2).has_value());
}

TEST(RefusalWatchTest, WhatWasThereBeforeItDoesNotCountUntilItIsLeftAgain) {
  const std::string dir = ::testing::TempDir() + "/watched";
  std::filesystem::create_directories(dir);
  const Ending damaged = EndingOf(Ending::MEMBER_FAILED, COORDINATOR, 0, "a damaged cut");
  LeaveRefusal(dir, 2, damaged);
  const RefusalWatch watch(dir, 2);
  EXPECT_FALSE(watch.New().has_value());
  LeaveRefusal(dir, 1, damaged);
  EXPECT_FALSE(watch.New().has_value()) << "of another submission";
  RemoveRefusal(dir, 2);
  EXPECT_FALSE(watch.New().has_value()) << "taken back";
  LeaveRefusal(dir, 2, damaged);
  ASSERT_TRUE(watch.New().has_value()) << "the same cause again";
  EXPECT_EQ(watch.New()->text(), "a damaged cut");
  const RefusalWatch later(dir, 2);
  EXPECT_FALSE(later.New().has_value());
  LeaveRefusal(dir, 2, damaged);
  EXPECT_TRUE(later.New().has_value()) << "without having been taken back";
}

TEST(RefusalTest, AFolderThatIsGoneIsNoError) {
  LeaveRefusal("/no/such/folder", 1, EndingOf(Ending::OTHER, "x"));
  RemoveRefusal("/no/such/folder", 1);
  EXPECT_FALSE(RefusalOf("/no/such/folder", 1).has_value());
  EXPECT_FALSE(RefusalWatch("/no/such/folder", 1).New().has_value());
}

TEST(RefusalTest, OnlyACoordinatorThatHasClaimedNothingRefuses) {
  StatusAnswer status;
  status.set_state(FAILED);
  status.set_submission(2);
  EXPECT_TRUE(IsRefusal(status, 2));
  EXPECT_FALSE(IsRefusal(status, 1));
  status.set_generation(5);
  EXPECT_FALSE(IsRefusal(status, 2)) << "the run has failed";
  status.clear_generation();
  status.set_state(STARTING);
  EXPECT_FALSE(IsRefusal(status, 2));
}

}  // namespace
}  // namespace satrap
