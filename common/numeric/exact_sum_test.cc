#include "common/numeric/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/numeric/clip_factor.h"
#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

double SumOf(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.Add(value);
  return sum.Rounded();
}

TEST(ExactSumTest, RoundsOnce) {
  EXPECT_EQ(SumOf({}), 0);
  EXPECT_EQ(SumOf({0.1}), 0.1);
  EXPECT_EQ(SumOf({1, 1e100, 1, -1e100}), 2);
  // A sum halfway between two doubles is rounded to even; one slightly above the middle is rounded
  // up.
  EXPECT_EQ(SumOf({1, 0x1p-53}), 1);
  EXPECT_EQ(SumOf({1, 0x1p-53, 0x1p-120}), 1 + 0x1p-52);
  EXPECT_EQ(SumOf({1 + 0x1p-52, 0x1p-53}), 1 + 0x1p-51);
  EXPECT_EQ(SumOf({1 + 0x1p-52, 0x1p-53, -0x1p-120}), 1 + 0x1p-52);
  EXPECT_EQ(SumOf(std::vector<double>(10, 0.1)), 1);
}

TEST(ExactSumTest, GivesTheSameBitsInAnyOrderAndDividedAnyhow) {
  SplitMix64 random(1);
  std::vector<double> values;
  for (int i = 0; i < 2000; ++i) {
    const double mantissa = static_cast<double>(random.Below(1 << 24));
    values.push_back(std::ldexp(mantissa * mantissa, static_cast<int>(random.Below(160)) - 80));
  }
  const double whole = SumOf(values);
  // Plain addition gives different sums for these two orders, so the test would notice an ExactSum
  // that rounds.
  double forward = 0, backward = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    forward += values[i];
    backward += values[values.size() - 1 - i];
  }
  EXPECT_NE(forward, backward);
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(SumOf(values), whole);
  for (const size_t shares : {2, 3, 7}) {
    std::vector<ExactSum> sums(shares);
    for (const double value : values) sums[random.Below(shares)].Add(value);
    ExactSum total;
    for (const ExactSum& sum : sums) {
      for (const double term : sum.Terms()) total.Add(term);
    }
    EXPECT_EQ(total.Rounded(), whole) << shares;
  }
}

TEST(ExactSumTest, KeepsWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  ExactSum sum;
  sum.Add(1);
  sum.Add(inf);
  sum.Add(2);
  EXPECT_EQ(sum.Rounded(), inf);
  EXPECT_EQ(sum.Terms()[0], inf);
  sum.Add(-inf);
  EXPECT_TRUE(std::isnan(sum.Rounded()));
}

TEST(ClipFactorTest, BringsANormDownToTheLimitAndLeavesOthersAlone) {
  EXPECT_EQ(ClipFactor(2, 16), 0.5f);
  EXPECT_EQ(ClipFactor(2, 4), 1.0f);
  EXPECT_EQ(ClipFactor(2, 0), 1.0f);
  EXPECT_EQ(ClipFactor(2, std::numeric_limits<double>::infinity()), 0.0f);
  EXPECT_EQ(ClipFactor(2, std::numeric_limits<double>::quiet_NaN()), 1.0f);
}

}  // namespace
}  // namespace satrap
