#include "nn_worker/graph/step/gradient_squares.h"

#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

OptimizerRule With(float l2, float l1) {
  OptimizerRule rule;
  rule.l2 = l2;
  rule.l1 = l1;
  return rule;
}

TEST(GradientSquaresTest, AddsUpTheSquaresOfScaledGradientsWithL2AndL1) {
  EXPECT_EQ(GradientSquares(1, With(1, 1), {}, {}), 0);
  EXPECT_EQ(GradientSquares(0.5f, With(0, 0), {4, 6}, {1, 1}), 4 + 9);
  EXPECT_EQ(GradientSquares(0.5f, With(2, 0), {4, 6}, {1, -1}), 16 + 1);
  EXPECT_EQ(GradientSquares(0.5f, With(2, 3), {4, 6, 8}, {1, -1, 0}), 49 + 4 + 16);
  for (const size_t n : {7, 8, 9, 1000}) {
    std::vector<float> gradient, w;
    double want = 0;
    for (size_t i = 0; i < n; ++i) {
      gradient.push_back(static_cast<float>(UniformDouble(RandomBits(1, i)) - 0.5));
      w.push_back(static_cast<float>(UniformDouble(RandomBits(2, i)) - 0.5));
      const double g = 0.25 * gradient[i] + 0.125 * w[i] + (w[i] > 0 ? 0.5 : -0.5);
      want += g * g;
    }
    EXPECT_NEAR(GradientSquares(0.25f, With(0.125f, 0.5f), gradient, w), want, 1e-12 * want) << n;
  }
}

}  // namespace
}  // namespace satrap
