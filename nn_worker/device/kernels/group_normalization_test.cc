#include "nn_worker/device/kernels/group_normalization.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

constexpr int64_t kRows = 13, kGroups = 3;
// Widths for which a group has one lane, several lanes, or a whole warp; some divide evenly among
// the lanes, others do not.
constexpr int64_t kWidths[] = {1, 4, 5, 33, 130};

double SumOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// The values of one group.
std::vector<double> GroupOf(const std::vector<float>& x, int64_t group, int64_t width) {
  return {x.begin() + group * width, x.begin() + (group + 1) * width};
}

ConstValues Put(TestDevice* device, const std::vector<float>& x, int64_t width) {
  return {device->Put(x), kRows, kGroups * width, kGroups * width};
}

TEST_P(KernelTest, SoftmaxAndItsGradientAreThoseOfALoop) {
  for (const int64_t width : kWidths) {
    const int64_t cols = kGroups * width, count = kRows * cols;
    auto x = RandomValues(count, 1);
    for (float& value : x) value *= 30;
    const auto dy = RandomValues(count, 2), before = RandomValues(count, 3);
    float* const y = device_.Room<float>(count);
    float* const dx = device_.Put(before);
    SoftmaxGroups(device_.stream(), Put(&device_, x, width), width, MatrixOf(y, kRows, cols));
    SoftmaxGroupsGrad(device_.stream(), MatrixOf(y, kRows, cols), Put(&device_, dy, width), width,
                      MatrixOf(dx, kRows, cols), /*add=*/true);
    const auto got = device_.Get(y, count), got_dx = device_.Get(dx, count);
    for (int64_t g = 0; g < kRows * kGroups; ++g) {
      const auto of_x = GroupOf(x, g, width), of_dy = GroupOf(dy, g, width);
      std::vector<double> exps, products;
      for (const double value : of_x) exps.push_back(std::exp(value));
      const double sum = SumOf(exps);
      for (int64_t k = 0; k < width; ++k) products.push_back(exps[k] / sum * of_dy[k]);
      const double dot = SumOf(products);
      for (int64_t k = 0; k < width; ++k) {
        const double want = exps[k] / sum;
        ASSERT_NEAR(got[g * width + k], want, 1e-5) << width;
        ASSERT_NEAR(got_dx[g * width + k], before[g * width + k] + want * (of_dy[k] - dot), 1e-5);
      }
    }
  }
}

TEST_P(KernelTest, NormalizationAndItsGradientAreThoseOfALoop) {
  constexpr float kEpsilon = 1e-3f;
  for (const bool centred : {false, true}) {
    for (const int64_t width : kWidths) {
      const int64_t cols = kGroups * width, count = kRows * cols;
      const double n = static_cast<double>(width);
      auto x = RandomValues(count, 4);
      for (float& value : x) value += 5;
      const auto dy = RandomValues(count, 5);
      float* const y = device_.Room<float>(count);
      float* const inverse = device_.Room<float>(kRows * kGroups);
      float* const dx = device_.Room<float>(count);
      NormalizeGroups(device_.stream(), centred, Put(&device_, x, width), width, kEpsilon,
                      MatrixOf(y, kRows, cols), MatrixOf(inverse, kRows, kGroups));
      NormalizeGroupsGrad(device_.stream(), centred, MatrixOf(y, kRows, cols),
                          MatrixOf(inverse, kRows, kGroups), Put(&device_, dy, width), width,
                          MatrixOf(dx, kRows, cols), /*add=*/false);
      const auto got = device_.Get(y, count), got_dx = device_.Get(dx, count);
      const auto got_inverse = device_.Get(inverse, kRows * kGroups);
      for (int64_t g = 0; g < kRows * kGroups; ++g) {
        auto of_x = GroupOf(x, g, width);
        const auto of_dy = GroupOf(dy, g, width);
        const double mean = centred ? SumOf(of_x) / n : 0;
        std::vector<double> squares, products;
        for (double& value : of_x) value -= mean;
        for (const double value : of_x) squares.push_back(value * value);
        const double factor = 1 / std::sqrt(SumOf(squares) / (centred ? n : 1) + kEpsilon);
        ASSERT_NEAR(got_inverse[g], factor, 1e-4 * factor);
        for (int64_t k = 0; k < width; ++k) products.push_back(of_x[k] * factor * of_dy[k]);
        const double slope = SumOf(products) / (centred ? n : 1);
        const double shift = centred ? SumOf(of_dy) / n : 0;
        for (int64_t k = 0; k < width; ++k) {
          const double want = of_x[k] * factor;
          ASSERT_NEAR(got[g * width + k], want, 1e-4) << width;
          ASSERT_NEAR(got_dx[g * width + k], factor * (of_dy[k] - shift - want * slope),
                      1e-4 * (1 + factor))
              << width;
        }
      }
    }
  }
}

TEST_P(KernelTest, ANanMakesItsGroupNanAndNoOther) {
  auto x = RandomValues(kRows * kGroups * 5, 6);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  float* const y = device_.Room<float>(static_cast<int64_t>(x.size()));
  SoftmaxGroups(device_.stream(), Put(&device_, x, 5), 5, MatrixOf(y, kRows, kGroups * 5));
  const auto got = device_.Get(y, static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::isnan(got[i]), i / 5 == 1) << i;
}

TEST_P(KernelTest, GroupsHaveTheSameBitsInEveryOrder) {
  const auto x = RandomValues(kRows * kGroups * 130, 7);
  const auto softmax = [&](TestDevice* device) {
    float* const y = device->Room<float>(static_cast<int64_t>(x.size()));
    SoftmaxGroups(device->stream(), Put(device, x, 130), 130, MatrixOf(y, kRows, kGroups * 130));
    return device->Get(y, static_cast<int64_t>(x.size()));
  };
  TestDevice forward;
  EXPECT_EQ(softmax(&device_), softmax(&forward));
}

}  // namespace
}  // namespace satrap
