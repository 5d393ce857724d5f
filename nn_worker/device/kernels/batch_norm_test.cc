#include "nn_worker/device/kernels/batch_norm.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

std::vector<double> Moments(TestDevice* device, const std::vector<float>& x, int64_t rows,
                            int64_t cols, int64_t stride) {
  double* const sums = device->Room<double>(2 * cols + 1);
  SumMoments(device->stream(), {device->Put(x), rows, cols, stride},
             device->Room<double>(BatchNormPartials(rows, cols)), sums);
  return device->Get(sums, 2 * cols + 1);
}

// backend_conformance.cc tests the rest of batch normalisation, but its batches have only one
// piece.
TEST_P(KernelTest, SumsOverManyPiecesAreThoseOfALoop) {
  const int64_t rows = 2 * kBatchNormRows + 7, cols = 35, stride = 37;
  const auto x = RandomValues(rows * stride, 1), dy = RandomValues(rows * stride, 2);
  const auto mean = RandomValues(cols, 3), inverse_std = RandomValues(cols, 4);
  double* const grad_sums = device_.Room<double>(2 * cols);
  SumBatchNormGrad(device_.stream(), {device_.Put(x), rows, cols, stride},
                   {device_.Put(mean), device_.Put(inverse_std)},
                   {device_.Put(dy), rows, cols, stride},
                   device_.Room<double>(BatchNormPartials(rows, cols)), grad_sums);
  const auto gradients = device_.Get(grad_sums, 2 * cols);
  const auto moments = Moments(&device_, x, rows, cols, stride);
  for (int64_t c = 0; c < cols; ++c) {
    double sum = 0, squares = 0, gradient = 0, product = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const double value = x[r * stride + c], slope = dy[r * stride + c];
      sum += value;
      squares += value * value;
      gradient += slope;
      product += slope * ((value - mean[c]) * inverse_std[c]);
    }
    ASSERT_NEAR(moments[c], sum, 1e-9);
    ASSERT_NEAR(moments[cols + c], squares, 1e-9);
    ASSERT_NEAR(gradients[c], gradient, 1e-9);
    ASSERT_NEAR(gradients[cols + c], product, 1e-3);
  }
  EXPECT_EQ(moments[2 * cols], rows);
}

TEST_P(KernelTest, MomentsHaveTheSameBitsInEveryOrder) {
  const auto x = RandomValues(3000 * 40, 5);
  TestDevice forward;
  EXPECT_EQ(Moments(&device_, x, 3000, 40, 40), Moments(&forward, x, 3000, 40, 40));
}

}  // namespace
}  // namespace satrap
