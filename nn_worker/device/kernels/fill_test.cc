#include "nn_worker/device/kernels/fill.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

// Rows begin at multiples of 16 bytes or elsewhere, with and without gaps. Only the values may be
// written.
TEST_P(KernelTest, FillWritesTheElementsAndNothingElse) {
  for (const int64_t cols : {1, 3, 4, 7, 33, 1030}) {
    for (const int64_t gap : {0, 1, 4}) {
      for (const int64_t begin : {0, 1, 4}) {
        const int64_t rows = 5, stride = cols + gap, count = begin + rows * stride;
        float* const y = device_.Room<float>(count);
        Fill(device_.stream(), Matrix<float>{y + begin, rows, cols, stride}, 2.5f);
        const auto got = device_.Get(y, count);
        for (int64_t i = 0; i < count; ++i) {
          const bool written = i >= begin && (i - begin) % stride < cols;
          ASSERT_EQ(got[i] == 2.5f, written) << cols << " " << gap << " " << begin << " " << i;
          ASSERT_EQ(std::isnan(got[i]), !written);
        }
      }
    }
  }
}

TEST_P(KernelTest, FillRoundsToTheType) {
  const float value = 1 + 0x1p-8f + 0x1p-11f;
  double* const f64 = device_.Room<double>(9);
  Half* const f16 = device_.Room<Half>(9);
  Bf16* const bf16 = device_.Room<Bf16>(9);
  Fill(device_.stream(), MatrixOf(f64, 3, 3), value);
  Fill(device_.stream(), MatrixOf(f16, 3, 3), value);
  Fill(device_.stream(), MatrixOf(bf16, 3, 3), value);
  EXPECT_EQ(device_.Get(f64, 9), std::vector<double>(9, value));
  for (const Half half : device_.Get(f16, 9)) EXPECT_EQ(ToFloat(half), 1 + 0x1p-8f);
  for (const Bf16 half : device_.Get(bf16, 9)) EXPECT_EQ(ToFloat(half), 1 + 0x1p-7f);
}

TEST_P(KernelTest, FillOfNothingIsLegal) {
  float* const y = device_.Room<float>(4);
  Fill(device_.stream(), MatrixOf(y, 0, 4), 1);
  Fill(device_.stream(), MatrixOf(y, 4, 0), 1);
  for (const float value : device_.Get(y, 4)) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace satrap
