#include "data_loader/transform/feature_cross.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

// Stored rows are found by these ids, so if they changed, the rows of every cross would be lost.
TEST(FeatureCrossTest, KeepsItsGoldenValues) {
  EXPECT_EQ(CrossId({1, 2}), 0x4b180fec3ef3d4acULL);
  EXPECT_EQ(CrossId({2, 1}), 0x41525b709a47b22bULL);
  EXPECT_EQ(CrossId({0xef46db3751d8e999ULL, 7}), 0x1a2330b6ca553afdULL);
  EXPECT_EQ(CrossId({1, 2, 3, 4, 5}), 0xbc50ebd6bc8fa148ULL);
  // These are the ids of the strings "68fd1e64" and "a".
  EXPECT_EQ(CrossId({0x5d3ccd85c9c22fe4ULL, 0xd24ec4f1a98c6e5bULL}), 0xd999e01df785f3bcULL);
}

TEST(FeatureCrossTest, TheOrderAndTheNumberOfIdsCount) {
  EXPECT_NE(CrossId({1, 2}), CrossId({2, 1}));
  EXPECT_NE(CrossId({1, 2}), CrossId({1, 2, 0}));
}

}  // namespace
}  // namespace satrap
