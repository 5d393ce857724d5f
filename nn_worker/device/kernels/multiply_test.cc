#include "nn_worker/device/kernels/multiply.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

constexpr int64_t kRows = 9, kCols = 24, kWidth = 6, kGap = 3;

// The same matrix on the host and on the device. On the device there are NaNs between its rows.
struct Twin {
  std::vector<float> host;  // without gaps
  Values device;
};

Twin Random(TestDevice* device, int64_t rows, int64_t cols, uint64_t seed, bool aligned) {
  Twin twin;
  twin.host = RandomValues(rows * cols, seed);
  const int64_t stride = cols + (aligned ? kGap + (4 - (cols + kGap) % 4) % 4 : kGap);
  std::vector<float> spread(rows * stride, NAN);
  for (int64_t i = 0; i < rows * cols; ++i) spread[i / cols * stride + i % cols] = twin.host[i];
  twin.device = {device->Put(spread), rows, cols, stride};
  return twin;
}

// Returns the values without the gaps, and expects that the gaps are still NaN.
std::vector<float> Get(TestDevice* device, const Values& y) {
  std::vector<float> values;
  const auto spread = device->Get(static_cast<const float*>(y.data), y.rows * y.stride);
  for (int64_t i = 0; i < y.rows * y.stride; ++i) {
    if (i % y.stride < y.cols) {
      values.push_back(spread[i]);
    } else {
      EXPECT_TRUE(std::isnan(spread[i])) << "between the rows";
    }
  }
  return values;
}

TEST_P(KernelTest, ScaledValuesAreThoseOfALoop) {
  for (const bool aligned : {false, true}) {
    for (const bool add : {false, true}) {
      const Twin x = Random(&device_, kRows, kCols, 1, aligned);
      const Twin y = Random(&device_, kRows, kCols, 2, aligned);
      ScaleValues(device_.stream(), -1.5f, x.device, y.device, add);
      const auto got = Get(&device_, y.device);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], -1.5f * x.host[i] + (add ? y.host[i] : 0), 1e-6) << i;
      }
    }
  }
}

TEST_P(KernelTest, AFactorMayBeAMatrixAColumnOrAGroup) {
  for (const bool aligned : {false, true}) {
    for (const bool add : {false, true}) {
      for (const int64_t cols : {kCols, int64_t{1}, kWidth}) {
        const int64_t rows = cols == kWidth ? 1 : kRows;
        const Twin a = Random(&device_, kRows, kCols, 1, aligned);
        const Twin b = Random(&device_, rows, cols, 2, aligned);
        const Twin y = Random(&device_, kRows, kCols, 3, aligned);
        MultiplyValues(device_.stream(), a.device, b.device, y.device, add);
        const auto got = Get(&device_, y.device);
        for (int64_t i = 0; i < kRows; ++i) {
          for (int64_t c = 0; c < kCols; ++c) {
            const int64_t at = i * kCols + c;
            const float factor = b.host[(rows == 1 ? 0 : i * cols) + c % cols];
            ASSERT_NEAR(got[at], a.host[at] * factor + (add ? y.host[at] : 0), 1e-6) << at;
          }
        }
      }
    }
  }
}

TEST_P(KernelTest, TheMatrixOfARowIsTransposed) {
  for (const bool aligned : {false, true}) {
    for (const bool add : {false, true}) {
      const Twin x = Random(&device_, kRows, kCols, 1, aligned);
      const Twin y = Random(&device_, kRows, kCols, 2, aligned);
      TransposeRows(device_.stream(), x.device, kWidth, y.device, add);
      const auto got = Get(&device_, y.device);
      const int64_t height = kCols / kWidth;
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t r = 0; r < height; ++r) {
          for (int64_t c = 0; c < kWidth; ++c) {
            const int64_t at = i * kCols + c * height + r;
            ASSERT_NEAR(got[at], x.host[i * kCols + r * kWidth + c] + (add ? y.host[at] : 0), 1e-6)
                << at;
          }
        }
      }
    }
  }
}

// 1 + 2^-7 squared is 1 + 2^-6 + 2^-14: the product of two BF16 is rounded once.
TEST_P(KernelTest, SixteenBitValuesMayBeMixed) {
  const float factor = 1 + 0x1p-7f;
  const Matrix<Bf16> a = MatrixOf(device_.Put(std::vector<Bf16>(6, FromFloat<Bf16>(factor))), 1, 6);
  const Matrix<Half> b = MatrixOf(device_.Put(std::vector<Half>(6, FromFloat<Half>(factor))), 1, 6);
  Half* const half = device_.Room<Half>(6);
  float* const full = device_.Room<float>(6);
  MultiplyValues(device_.stream(), a, b, MatrixOf(half, 1, 6), /*add=*/false);
  MultiplyValues(device_.stream(), a, b, MatrixOf(full, 1, 6), /*add=*/false);
  EXPECT_EQ(device_.Get(full, 6), std::vector<float>(6, 1 + 0x1p-6f + 0x1p-14f));
  for (const Half value : device_.Get(half, 6)) EXPECT_EQ(ToFloat(value), 1 + 0x1p-6f);
}

}  // namespace
}  // namespace satrap
