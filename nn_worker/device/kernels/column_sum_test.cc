#include "nn_worker/device/kernels/column_sum.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/activation.h"
#include "nn_worker/device/testing/device_testing.h"
#include "nn_worker/device/testing/typed_values.h"

namespace satrap {
namespace {

constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kF16, ElementType::kBF16};
constexpr Activation kActivations[] = {Activation::kLinear, Activation::kRelu, Activation::kSigmoid,
                                       Activation::kTanh};
// Widths around those of octets and tiles, and numbers of rows around those of pieces.
constexpr int64_t kWidths[] = {1, 7, 13, 400, 429, 1030};

std::vector<float> Sums(TestDevice* device, const ConstValues& x) {
  float* const partials = device->Room<float>(ColumnSumPartials(x.rows, x.cols));
  float* const sums = device->Room<float>(x.cols);
  ColumnSum(device->stream(), x, partials, sums);
  return device->Get(sums, x.cols);
}

struct Gradients {
  std::vector<float> dx, sums;
};
Gradients OnePass(TestDevice* device, Activation activation, const Values& y, const Values& dy,
                  const Values& dx) {
  float* const partials = device->Room<float>(ColumnSumPartials(y.rows, y.cols));
  float* const sums = device->Room<float>(y.cols);
  ActivateGradColumnSum(device->stream(), activation, y, dy, dx, partials, sums);
  return {GetValues(device, dx), device->Get(sums, y.cols)};
}

TEST_P(KernelTest, ColumnsAreSummedAsALoopDoes) {
  for (const ElementType type : kTypes) {
    for (const int64_t cols : kWidths) {
      const int64_t piece = ColumnTiles(cols).piece_rows();
      for (const int64_t rows : {int64_t{0}, int64_t{37}, piece + 1}) {
        if (rows * cols > 40000) continue;
        for (const bool aligned : {true, false}) {
          const Values x = PutRandom(&device_, type, rows, cols, 3, aligned);
          const auto got = Sums(&device_, x);
          const auto values = GetValues(&device_, x);
          for (int64_t c = 0; c < cols; ++c) {
            double sum = 0;
            for (int64_t r = 0; r < rows; ++r) sum += values[r * cols + c];
            ASSERT_NEAR(got[c], sum, 1e-6 * static_cast<double>(rows)) << rows << " x " << cols;
          }
        }
      }
    }
  }
}

TEST_P(KernelTest, ColumnSumsHaveTheSameBitsInEveryOrderAndAlignment) {
  TestDevice forward;
  const Values x = PutRandom(&device_, ElementType::kBF16, 700, 40, 4, /*aligned=*/true);
  const auto expected = Sums(&forward, PutRandom(&forward, x.type, 700, 40, 4, /*aligned=*/false));
  EXPECT_EQ(Sums(&device_, x), expected);
  // F32 holds the values of x exactly.
  EXPECT_EQ(Sums(&device_, PutValues(&device_, ElementType::kF32, 700, 40, GetValues(&device_, x),
                                     /*aligned=*/true)),
            expected);
}

// There are many more pieces than kPartialLanes. With a stride of 0, all rows share their values in
// memory.
TEST(ColumnSumTest, ThereMayBeMorePiecesThanLanesThatAddThem) {
  TestDevice device;
  const int64_t rows = 150 * ColumnTiles(1).piece_rows() + 3;
  const float* const x = device.Put(std::vector<float>{0.5f});
  EXPECT_EQ(Sums(&device, Matrix<const float>{x, rows, 1, 0})[0], 0.5f * static_cast<float>(rows));
}

TEST_P(KernelTest, SixteenBitColumnsAreSummedInF32) {
  // A sum in 16 bits would stay at 2048.
  const int64_t rows = 4000;
  Half* const x = device_.Put(std::vector<Half>(rows * 2, FromFloat<Half>(1)));
  EXPECT_EQ(Sums(&device_, Matrix<const Half>{x, rows, 2, 2}), std::vector<float>(2, 4000));
}

// A column of NaNs must not reach its neighbours.
TEST_P(KernelTest, AColumnSumIsOfItsColumnAlone) {
  std::vector<float> values(9 * 20, 1);
  for (int64_t r = 0; r < 9; ++r) values[r * 20 + 7] = NAN;
  const auto sums =
      Sums(&device_, PutValues(&device_, ElementType::kBF16, 9, 20, values, /*aligned=*/true));
  for (int64_t c = 0; c < 20; ++c) EXPECT_EQ(std::isnan(sums[c]), c == 7) << c;
}

TEST_P(KernelTest, GradientsOfActivationsAndTheirSumsAreThoseOfTwoPasses) {
  for (const Activation activation : kActivations) {
    for (const ElementType type : kTypes) {
      for (const ElementType y_type : {type, ElementType::kF32}) {
        for (const int64_t cols : {13, 429}) {
          for (const bool aligned : {true, false}) {
            const int64_t rows = cols < 400 ? 70 : 90;
            const Values y = PutRandom(&device_, y_type, rows, cols, 5, aligned);
            const Values dy = PutRandom(&device_, type, rows, cols, 6, aligned);
            const Values dx = PutRandom(&device_, type, rows, cols, 7, aligned);
            ActivateGrad(device_.stream(), activation, y, dy, dx, /*add=*/false);
            const auto expected_dx = GetValues(&device_, dx);
            const auto expected_sums = Sums(&device_, dx);
            const Gradients got = OnePass(&device_, activation, y, dy, dy);
            ASSERT_EQ(got.dx, expected_dx) << cols << " " << static_cast<int>(activation);
            ASSERT_EQ(got.sums, expected_sums) << cols << " " << static_cast<int>(activation);
          }
        }
      }
    }
  }
}

TEST_P(KernelTest, AGradientOfAnActivationMayGoElsewhere) {
  const Values y = PutValues(&device_, ElementType::kF32, 3, 2, {1, 0, -1, 2, 3, NAN}, true);
  const Values dy = PutValues(&device_, ElementType::kF32, 3, 2, {10, 20, 30, 40, 50, 60}, true);
  for (const ElementType type : kTypes) {
    const Values dx = PutRandom(&device_, type, 3, 2, 8, /*aligned=*/true);
    const Gradients got = OnePass(&device_, Activation::kRelu, y, dy, dx);
    EXPECT_EQ(got.dx, (std::vector<float>{10, 0, 0, 40, 50, 0}));
    EXPECT_EQ(got.sums, (std::vector<float>{60, 40}));
  }
  EXPECT_EQ(GetValues(&device_, dy), (std::vector<float>{10, 20, 30, 40, 50, 60}));
}

TEST_P(KernelTest, GradientsOfNoRowsHaveSumsOfZero) {
  const Values none = PutRandom(&device_, ElementType::kF32, 0, 3, 1, /*aligned=*/true);
  EXPECT_EQ(OnePass(&device_, Activation::kRelu, none, none, none).sums, std::vector<float>(3, 0));
}

}  // namespace
}  // namespace satrap
