#include "nn_worker/device/kernels/row_sum.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include "common/numeric/half.h"
#include "gtest/gtest.h"
#include "nn_worker/device/float16.h"
#include "nn_worker/device/testing/device_testing.h"
#include "nn_worker/device/testing/typed_values.h"

namespace satrap {
namespace {

constexpr int64_t kRows = 37, kCols = 21;
constexpr int kInputs = 3;

// The sums s and s^2 - sum x^2 of each column.
struct Sums {
  std::vector<double> s, pairs;
};
Sums SumsOf(const RandomMatrices& inputs) {
  Sums sums;
  for (int64_t i = 0; i < kRows * kCols; ++i) {
    double sum = 0, squares = 0;
    for (const auto& x : inputs.host) {
      sum += x[i];
      squares += static_cast<double>(x[i]) * x[i];
    }
    sums.s.push_back(sum);
    sums.pairs.push_back(sum * sum - squares);
  }
  return sums;
}

TEST_P(KernelTest, SumsOfRowsAreThoseOfALoop) {
  const RandomMatrices inputs(&device_, kInputs, kRows, kCols);
  float* const y = device_.Room<float>(kRows);
  RowSum(device_.stream(), device_.Put(inputs.views), kInputs, MatrixOf(y, kRows, 1));
  const auto got = device_.Get(y, kRows);
  const Sums sums = SumsOf(inputs);
  for (int64_t i = 0; i < kRows; ++i) {
    double want = 0;
    for (int64_t c = 0; c < kCols; ++c) want += sums.s[i * kCols + c];
    ASSERT_NEAR(got[i], want, 1e-5) << i;
  }
}

TEST_P(KernelTest, FmAndBiInteractionAreThoseOfALoop) {
  const RandomMatrices inputs(&device_, kInputs, kRows, kCols);
  const ConstValues* const list = device_.Put(inputs.views);
  float* const s = device_.Room<float>(kRows * kCols);
  float* const fm = device_.Room<float>(kRows);
  float* const pairs = device_.Room<float>(kRows * kCols);
  Fm(device_.stream(), list, kInputs, MatrixOf(s, kRows, kCols), MatrixOf(fm, kRows, 1));
  const auto of_fm = device_.Get(s, kRows * kCols);
  BiInteraction(device_.stream(), list, kInputs, MatrixOf(s, kRows, kCols),
                MatrixOf(pairs, kRows, kCols));
  EXPECT_EQ(device_.Get(s, kRows * kCols), of_fm);
  const auto got = device_.Get(pairs, kRows * kCols), got_fm = device_.Get(fm, kRows);
  const Sums sums = SumsOf(inputs);
  for (int64_t i = 0; i < kRows; ++i) {
    double want = 0;
    for (int64_t at = i * kCols; at < (i + 1) * kCols; ++at) {
      ASSERT_NEAR(of_fm[at], sums.s[at], 1e-5) << at;
      ASSERT_NEAR(got[at], sums.pairs[at] / 2, 1e-5) << at;
      want += sums.pairs[at] / 2;
    }
    ASSERT_NEAR(got_fm[i], want, 1e-4) << i;
  }
}

// Two inputs share the second target, and their gradient is added to its old values. In the first
// run dy has one value per row; in the second, one for each value of the row.
TEST_P(KernelTest, GradientsThatInputsShareAreSummed) {
  const RandomMatrices inputs(&device_, kInputs, kRows, kCols);
  const auto s = RandomValues(kRows * kCols, 10), before = RandomValues(kRows * kCols, 11);
  for (const int64_t slopes : {int64_t{1}, kCols}) {
    const auto dy = RandomValues(kRows * slopes, 12);
    float* const first = device_.Put(before);
    float* const second = device_.Put(before);
    const std::vector<FmGradTarget> targets = {{Values(first, kRows, kCols, kCols), 0, 1, 0},
                                               {Values(second, kRows, kCols, kCols), 1, 2, 1}};
    FmGrad(device_.stream(), device_.Put(inputs.views), device_.Put(targets), 2,
           {device_.Put(s), kRows, kCols, kCols}, {device_.Put(dy), kRows, slopes, slopes});
    const auto got = device_.Get(first, kRows * kCols), shared = device_.Get(second, kRows * kCols);
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      const double slope = dy[slopes == 1 ? i / kCols : i];
      ASSERT_NEAR(got[i], slope * (s[i] - inputs.host[0][i]), 1e-5);
      ASSERT_NEAR(shared[i],
                  before[i] + slope * (2.0 * s[i] - inputs.host[1][i] - inputs.host[2][i]), 1e-5);
    }
  }
}

// The values after rounding to T. All types hold the values of the tests below exactly.
template <typename T>
std::vector<T> Halves(const std::vector<float>& values) {
  std::vector<T> halves;
  for (const float value : values) {
    if constexpr (std::is_same_v<T, float>) {
      halves.push_back(value);
    } else {
      halves.push_back({std::is_same_v<T, Half> ? F16FromF32(value) : Bf16FromF32(value)});
    }
  }
  return halves;
}
template <typename T>
float FloatOf(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return std::is_same_v<T, Half> ? F32FromF16(value.bits) : F32FromBf16(value.bits);
  }
}

// Sums and gradients are multiples of 1/16 below 16, which both 16-bit types hold.
template <typename T>
void ExpectFmOf(TestDevice* device, int inputs, int64_t cols) {
  std::vector<std::vector<float>> xs;
  std::vector<ConstValues> views;
  std::vector<FmGradTarget> targets;
  std::vector<T*> dxs;
  for (int f = 0; f < inputs; ++f) {
    xs.push_back(RandomValues(kRows * cols, f));
    for (float& value : xs.back()) value = std::round(value * 2) / 4;
    views.emplace_back(device->Put(Halves<T>(xs.back())), kRows, cols, cols);
    dxs.push_back(device->Room<T>(kRows * cols));
    targets.push_back({Values(dxs.back(), kRows, cols, cols), f, 1, 0});
  }
  std::vector<float> slopes = RandomValues(kRows, 99);
  for (float& slope : slopes) slope = slope > 0 ? 0.25f : -0.25f;
  float* const s = device->Room<float>(kRows * cols);
  float* const y = device->Room<float>(kRows);
  const ConstValues* const list = device->Put(views);
  Fm(device->stream(), list, inputs, MatrixOf(s, kRows, cols), MatrixOf(y, kRows, 1));
  FmGrad(device->stream(), list, device->Put(targets), inputs, MatrixOf(s, kRows, cols),
         {device->Put(slopes), kRows, 1, 1});
  std::vector<double> sums(kRows * cols, 0), pairs(kRows, 0);
  for (int64_t at = 0; at < kRows * cols; ++at) {
    double squares = 0;
    for (const auto& x : xs) {
      sums[at] += x[at];
      squares += double{x[at]} * x[at];
    }
    pairs[at / cols] += (sums[at] * sums[at] - squares) / 2;
  }
  const std::vector<float> got = device->Get(y, kRows);
  for (int64_t i = 0; i < kRows; ++i) ASSERT_EQ(got[i], pairs[i]) << inputs << " x " << cols;
  for (int f = 0; f < inputs; ++f) {
    const std::vector<T> dx = device->Get(dxs[f], kRows * cols);
    for (int64_t at = 0; at < kRows * cols; ++at) {
      ASSERT_EQ(FloatOf(dx[at]), slopes[at / cols] * (sums[at] - xs[f][at])) << f << " " << at;
    }
  }
}

// Tests numbers of inputs and targets that fill the groups which are loaded at once, and numbers
// that do not. Rows have fewer groups than lanes, as many, and more.
TEST_P(KernelTest, FmOfEachTypeIsThatOfALoop) {
  for (const int inputs : {1, 8, 11, 26}) {
    for (const int64_t cols : {1, 10, 16, 68}) {
      ExpectFmOf<float>(&device_, inputs, cols);
      ExpectFmOf<Half>(&device_, inputs, cols);
      ExpectFmOf<Bf16>(&device_, inputs, cols);
    }
  }
}

// The sums of arbitrary values, and the gradients. Every second gradient is added to its target.
template <typename T>
struct FmResults {
  std::vector<float> s, y;
  std::vector<std::vector<T>> dxs;
};
template <typename T>
FmResults<T> FmOf(TestDevice* device, int inputs, int64_t cols, int64_t slopes, bool wide) {
  std::vector<ConstValues> views;
  std::vector<FmGradTarget> targets;
  std::vector<WideFmGradTarget> wide_targets;
  std::vector<T*> dxs;
  for (int f = 0; f < inputs; ++f) {
    const T* const x = device->Put(Halves<T>(RandomValues(kRows * cols, f)));
    views.emplace_back(x, kRows, cols, cols);
    EXPECT_TRUE(HasWideRows(views.back()));
    dxs.push_back(device->Put(Halves<T>(RandomValues(kRows * cols, 100 + f))));
    targets.push_back({Values(dxs.back(), kRows, cols, cols), f, 1, f % 2});
    wide_targets.push_back({x, cols, dxs.back(), cols, f % 2});
  }
  const ConstValues* const list = device->Put(views);
  float* const s = device->Room<float>(kRows * cols);
  float* const y = device->Room<float>(kRows);
  const auto of_s = MatrixOf(s, kRows, cols), of_y = MatrixOf(y, kRows, 1);
  const ConstValues dy = {device->Put(RandomValues(kRows * slopes, 99)), kRows, slopes, slopes};
  if (wide) {
    WideFm(device->stream(), list, inputs, ElementTypeOf<T>(), of_s, of_y);
    WideFmGrad(device->stream(), device->Put(wide_targets), inputs, ElementTypeOf<T>(), of_s, dy);
  } else {
    Fm(device->stream(), list, inputs, of_s, of_y);
    FmGrad(device->stream(), list, device->Put(targets), inputs, of_s, dy);
  }
  FmResults<T> results = {device->Get(s, kRows * cols), device->Get(y, kRows), {}};
  for (T* const dx : dxs) results.dxs.push_back(device->Get(dx, kRows * cols));
  return results;
}
template <typename T>
void ExpectEqualBits(TestDevice* device, int inputs, int64_t cols, int64_t slopes) {
  const FmResults<T> wide = FmOf<T>(device, inputs, cols, slopes, true);
  const FmResults<T> narrow = FmOf<T>(device, inputs, cols, slopes, false);
  ASSERT_EQ(wide.s, narrow.s) << inputs << " x " << cols;
  ASSERT_EQ(wide.y, narrow.y) << inputs << " x " << cols;
  for (int f = 0; f < inputs; ++f) {
    for (int64_t at = 0; at < kRows * cols; ++at) {
      ASSERT_EQ(FloatOf(wide.dxs[f][at]), FloatOf(narrow.dxs[f][at])) << f << " " << at;
    }
  }
}

TEST_P(KernelTest, WideAccessesGiveTheBitsOfNarrowOnes) {
  for (const int inputs : {1, 8, 11, 26}) {
    for (const int64_t cols : {8, 16, 24, 72}) {
      for (const int64_t slopes : {int64_t{1}, cols}) {
        ExpectEqualBits<float>(&device_, inputs, cols, slopes);
        ExpectEqualBits<Half>(&device_, inputs, cols, slopes);
        ExpectEqualBits<Bf16>(&device_, inputs, cols, slopes);
      }
    }
  }
}

TEST(HasWideRows, RowsOfWholeAccessesAreWide) {
  alignas(16) static float data[32];
  EXPECT_TRUE(HasWideRows({data, 2, 12, 16, ElementType::kF32}));
  EXPECT_FALSE(HasWideRows({data, 2, 10, 16, ElementType::kF32}));
  EXPECT_FALSE(HasWideRows({data, 2, 12, 14, ElementType::kF32}));
  EXPECT_TRUE(HasWideRows({data, 1, 12, 14, ElementType::kF32}));
  EXPECT_FALSE(HasWideRows({data + 1, 2, 12, 16, ElementType::kF32}));
  EXPECT_FALSE(HasWideRows({data, 2, 12, 16, ElementType::kBF16}));
  EXPECT_TRUE(HasWideRows({data, 2, 8, 16, ElementType::kBF16}));
  EXPECT_FALSE(HasWideRows({data, 2, 8, 12, ElementType::kF16}));
}

}  // namespace
}  // namespace satrap
