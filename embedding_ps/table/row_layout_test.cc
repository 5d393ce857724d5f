#include "embedding_ps/table/row_layout.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

// The worked example of docs/formats.md, "Row".
TEST(RowLayoutTest, ValuesOfAllSegmentsComeBeforeTheirStates) {
  const RowLayout layout({{16, 16}, {1, 1}});
  EXPECT_EQ(layout.num_values(), 17);
  EXPECT_EQ(layout.num_floats(), 34);
  EXPECT_EQ(layout.segments()[0].value_offset, 0);
  EXPECT_EQ(layout.segments()[1].value_offset, 16);
  EXPECT_EQ(layout.segments()[0].state_offset, 17);
  EXPECT_EQ(layout.segments()[1].state_offset, 33);
}

TEST(RowLayoutTest, StrideIsAlignedWhereThatCostsLittle) {
  EXPECT_EQ(RowLayout({{16, 16}}).stride_bytes(), 128u);          // no cost
  EXPECT_EQ(RowLayout({{15, 15}}).stride_bytes(), 128u);          // 120 bytes
  EXPECT_EQ(RowLayout({{16, 16}, {1, 1}}).stride_bytes(), 136u);  // whole lines would cost 41 %
  EXPECT_EQ(RowLayout({{1, 0}}).stride_bytes(), 8u);
  EXPECT_EQ(RowLayout({{1, 1}}).stride_bytes(), 8u);
}

}  // namespace
}  // namespace satrap
