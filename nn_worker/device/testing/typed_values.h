// Matrices of any type on a TestDevice, for tests of kernels that take Values.

#ifndef SATRAP_NN_WORKER_DEVICE_TESTING_TYPED_VALUES_H_
#define SATRAP_NN_WORKER_DEVICE_TESTING_TYPED_VALUES_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace internal {

template <typename T>
Values PutAs(TestDevice* device, int64_t rows, int64_t cols, const std::vector<float>& values,
             bool aligned) {
  // Rows that are aligned begin at multiples of 16 bytes; the others also begin at an odd value.
  const int64_t stride = aligned ? (cols + 8) / 8 * 8 : cols + 3 + cols % 2;
  const int64_t before = aligned ? 0 : 1;
  std::vector<T> spread(before + rows * stride, FromFloat<T>(NAN));
  for (int64_t i = 0; i < rows * cols; ++i) {
    spread[before + i / cols * stride + i % cols] = FromFloat<T>(values[i]);
  }
  return {device->Put(spread) + before, rows, cols, stride};
}

template <typename T>
std::vector<float> GetAs(TestDevice* device, const Values& y) {
  const auto spread = device->Get(static_cast<const T*>(y.data), y.rows * y.stride);
  std::vector<float> values;
  for (int64_t i = 0; i < y.rows * y.stride; ++i) {
    if (i % y.stride < y.cols) {
      values.push_back(ToFloat(spread[i]));
    } else {
      EXPECT_TRUE(std::isnan(ToFloat(spread[i]))) << "between the rows";
    }
  }
  return values;
}

}  // namespace internal

// A matrix with these values, rounded to `type`, and with NaNs between its rows. If `aligned`, its
// rows begin at multiples of 16 bytes.
inline Values PutValues(TestDevice* device, ElementType type, int64_t rows, int64_t cols,
                        const std::vector<float>& values, bool aligned) {
  if (type == ElementType::kF32) return internal::PutAs<float>(device, rows, cols, values, aligned);
  if (type == ElementType::kF16) return internal::PutAs<Half>(device, rows, cols, values, aligned);
  return internal::PutAs<Bf16>(device, rows, cols, values, aligned);
}
inline Values PutRandom(TestDevice* device, ElementType type, int64_t rows, int64_t cols,
                        uint64_t seed, bool aligned) {
  return PutValues(device, type, rows, cols, RandomValues(rows * cols, seed), aligned);
}

// Returns the values without the gaps, and expects that the gaps are still NaN.
inline std::vector<float> GetValues(TestDevice* device, const Values& y) {
  if (y.type == ElementType::kF32) return internal::GetAs<float>(device, y);
  if (y.type == ElementType::kF16) return internal::GetAs<Half>(device, y);
  return internal::GetAs<Bf16>(device, y);
}

// Some F32 matrices without gaps, each with different values.
struct RandomMatrices {
  RandomMatrices(TestDevice* device, int count, int64_t rows, int64_t cols) {
    for (int f = 0; f < count; ++f) {
      host.push_back(RandomValues(rows * cols, f));
      views.emplace_back(device->Put(host[f]), rows, cols, cols);
    }
  }

  std::vector<std::vector<float>> host;
  std::vector<ConstValues> views;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_TESTING_TYPED_VALUES_H_
