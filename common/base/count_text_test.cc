#include "common/base/count_text.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(CountTextTest, GroupsThousands) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1000), "1,000");
  EXPECT_EQ(CountText(1234567), "1,234,567");
}

TEST(CountTextTest, OnlyOneIsSingular) {
  EXPECT_EQ(Counted(1, "sample"), "1 sample");
  EXPECT_EQ(Counted(0, "sample"), "0 samples");
  EXPECT_EQ(Counted(1234, "sample"), "1,234 samples");
  EXPECT_EQ(Counted(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(Counted(2, "entry", "entries"), "2 entries");
}

}  // namespace
}  // namespace satrap
