#include "common/numeric/random.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RandomTest, BitsDependOnEveryCounter) {
  std::set<uint64_t> seen;
  for (uint64_t a = 0; a < 20; ++a) {
    for (uint64_t b = 0; b < 20; ++b) {
      for (uint64_t c = 0; c < 20; ++c) seen.insert(RandomBits(a, b, c));
    }
  }
  EXPECT_EQ(seen.size(), 8000u);
}

// Golden values, which must not change: initial rows and weights are computed from them.
TEST(RandomTest, KeepsItsGoldenValues) {
  EXPECT_EQ(SplitMix64(0).Next(), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(RandomBits(0, 0), 0x568a9b0b1a2c05ecULL);
  EXPECT_EQ(RandomBits(1, 2, 3), 0xeb3aa0ce549fec8cULL);
}

TEST(RandomTest, UniformsStayBelowOne) {
  EXPECT_LT(UniformFloat(~uint64_t{0}), 1.0f);
  EXPECT_LT(UniformDouble(~uint64_t{0}), 1.0);
  EXPECT_EQ(UniformFloat(0), 0.0f);
}

TEST(RandomTest, BelowIsUniform) {
  SplitMix64 random(5);
  int count[10] = {};
  for (int i = 0; i < 100000; ++i) ++count[random.Below(10)];
  for (const int c : count) EXPECT_NEAR(c, 10000, 500);
}

TEST(RandomTest, NormalsHaveMeanZeroAndVarianceOne) {
  const int n = 100000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    const double x = NormalDouble(1, 2, i);
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, .02);
  EXPECT_NEAR(squares / n, 1, .02);
}

}  // namespace
}  // namespace satrap
