#include "nn_worker/device/kernels/convert.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

template <typename T>
std::vector<T> As(const std::vector<float>& values) {
  std::vector<T> converted;
  for (const float value : values) converted.push_back(FromFloat<T>(value));
  return converted;
}

// Compares with a loop over rows and columns, for matrices with and without gaps, aligned or not.
template <typename From, typename To>
void ExpectConverts(const HostDeviceOptions& options, bool add) {
  TestDevice device(options);
  for (const int64_t cols : {1, 5, 8, 40}) {
    for (const int64_t gap : {0, 3, 8}) {
      const int64_t rows = 6, stride = cols + gap, count = rows * stride;
      const auto x = As<From>(RandomValues(count, 1));
      const auto before = As<To>(RandomValues(count, 2));
      From* const from = device.Put(x);
      To* const to = device.Put(before);
      Convert(device.stream(), Matrix<const From>{from, rows, cols, stride},
              Matrix<To>{to, rows, cols, stride}, add);
      const auto got = device.Get(to, count);
      for (int64_t i = 0; i < count; ++i) {
        const bool inside = i % stride < cols;
        const float sum = ToFloat(x[i]) + (add ? ToFloat(before[i]) : 0);
        const float expected = inside ? ToFloat(FromFloat<To>(sum)) : ToFloat(before[i]);
        ASSERT_EQ(ToFloat(got[i]), expected) << cols << " " << gap << " " << i;
      }
    }
  }
}

class ConvertTest : public testing::TestWithParam<HostDeviceOptions> {};

TEST_P(ConvertTest, EveryTypeIsConvertedToEveryOther) {
  for (const bool add : {false, true}) {
    ExpectConverts<float, float>(GetParam(), add);
    ExpectConverts<float, Half>(GetParam(), add);
    ExpectConverts<float, Bf16>(GetParam(), add);
    ExpectConverts<Half, float>(GetParam(), add);
    ExpectConverts<Half, Half>(GetParam(), add);
    ExpectConverts<Half, Bf16>(GetParam(), add);
    ExpectConverts<Bf16, float>(GetParam(), add);
    ExpectConverts<Bf16, Half>(GetParam(), add);
    ExpectConverts<Bf16, Bf16>(GetParam(), add);
    ExpectConverts<double, float>(GetParam(), add);
  }
}

IN_EVERY_ORDER(ConvertTest);

}  // namespace
}  // namespace satrap
