#include "common/base/check.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(CheckTest, PassesSilently) {
  CHECK(1 + 1 == 2) << "never printed";
  CHECK_OK(absl::OkStatus());
}

TEST(CheckTest, EvaluatesOnce) {
  int count = 0;
  CHECK(++count == 1);
  CHECK_OK((++count, absl::OkStatus()));
  EXPECT_EQ(count, 2);
}

TEST(CheckDeathTest, PrintsConditionPlaceAndMessage) {
  const int rows = 0;
  EXPECT_DEATH(CHECK(rows > 0) << "table " << 7, "rows > 0 at .*check_test.cc:[0-9]+ table 7");
}

TEST(CheckDeathTest, PrintsTheStatus) {
  EXPECT_DEATH(CHECK_OK(absl::NotFoundError("no split 3")), "NOT_FOUND: no split 3");
}

}  // namespace
}  // namespace satrap
