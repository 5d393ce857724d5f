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

TEST(RefusalTest, AFolderThatIsGoneIsNoError) {
  LeaveRefusal("/no/such/folder", 1, EndingOf(Ending::OTHER, "x"));
  RemoveRefusal("/no/such/folder", 1);
  EXPECT_FALSE(RefusalOf("/no/such/folder", 1).has_value());
}

}  // namespace
}  // namespace satrap
