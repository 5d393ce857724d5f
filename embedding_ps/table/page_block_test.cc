#include "embedding_ps/table/page_block.h"

#include <utility>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(PageBlockTest, IsZeroAndWritableToItsLastByte) {
  PageBlock block(10000);
  ASSERT_GE(block.size(), 10000u);
  for (size_t i = 0; i < block.size(); ++i) ASSERT_EQ(block.data()[i], 0);
  block.data()[block.size() - 1] = 1;
}

TEST(PageBlockTest, LargeBlocksAreAlignedToHugePages) {
  for (const size_t bytes : {kHugePageBytes, 3 * kHugePageBytes + 5}) {
    PageBlock block(bytes, kHugePageBytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % kHugePageBytes, 0u);
    block.data()[block.size() - 1] = 1;
  }
}

TEST(PageBlockTest, MovingLeavesTheSourceEmpty) {
  PageBlock a(100);
  a.data()[3] = 7;
  PageBlock b(std::move(a));
  EXPECT_EQ(a.data(), nullptr);
  PageBlock c;
  c = std::move(b);
  EXPECT_EQ(c.data()[3], 7);
  EXPECT_EQ(b.size(), 0u);
}

}  // namespace
}  // namespace satrap
