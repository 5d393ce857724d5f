#include "nn_worker/device/kernels/column_sum.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

std::vector<float> Sums(TestDevice* device, const std::vector<float>& x, int64_t rows, int64_t cols,
                        int64_t stride) {
  float* const partials = device->Room<float>(ColumnSumPartials(rows, cols));
  float* const sums = device->Room<float>(cols);
  ColumnSum(device->stream(), Matrix<const float>{device->Put(x), rows, cols, stride}, partials,
            sums);
  return device->Get(sums, cols);
}

TEST_P(KernelTest, ColumnsAreSummedAsALoopDoes) {
  for (const int64_t rows : {0, 1, 7, 1024, 1025, 3000}) {
    for (const int64_t cols : {1, 31, 32, 70}) {
      const int64_t stride = cols + 2;
      const auto x = RandomValues(rows * stride, 3);
      const auto got = Sums(&device_, x, rows, cols, stride);
      for (int64_t c = 0; c < cols; ++c) {
        double sum = 0;
        for (int64_t r = 0; r < rows; ++r) sum += x[r * stride + c];
        ASSERT_NEAR(got[c], sum, 1e-6 * static_cast<double>(rows)) << rows << " " << cols;
      }
    }
  }
}

TEST_P(KernelTest, ColumnSumsHaveTheSameBitsInEveryOrder) {
  const auto x = RandomValues(5000 * 40, 4);
  TestDevice forward;
  EXPECT_EQ(Sums(&device_, x, 5000, 40, 40), Sums(&forward, x, 5000, 40, 40));
}

// A grid has at most 65535 rows of blocks, so many rows are needed. With a stride of 0, all rows
// are the same value in memory.
TEST(ColumnSumTest, ThereMayBeMoreRowsThanAGridTakes) {
  TestDevice device;
  const int64_t rows = 65536 * kColumnSumRows + 3;
  float* const partials = device.Room<float>(ColumnSumPartials(rows, 1));
  float* const sums = device.Room<float>(1);
  ColumnSum(device.stream(), Matrix<const float>{device.Put(std::vector<float>{0.5f}), rows, 1, 0},
            partials, sums);
  EXPECT_EQ(device.Get(sums, 1)[0], 0.5f * static_cast<float>(rows));
}

TEST_P(KernelTest, SixteenBitColumnsAreSummedInF32) {
  // A sum in 16 bits would stay at 2048.
  const int64_t rows = 4000;
  Half* const x = device_.Put(std::vector<Half>(rows * 2, FromFloat<Half>(1)));
  float* const partials = device_.Room<float>(ColumnSumPartials(rows, 2));
  float* const sums = device_.Room<float>(2);
  ColumnSum(device_.stream(), Matrix<const Half>{x, rows, 2, 2}, partials, sums);
  EXPECT_EQ(device_.Get(sums, 2), std::vector<float>(2, 4000));
}

}  // namespace
}  // namespace satrap
