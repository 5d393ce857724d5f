#include "nn_worker/device/kernels/matrix_product.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

struct Shape {
  int64_t rows, cols, k;
};
// Sizes just below, at and above those of tiles, wide and narrow; one output; no terms.
constexpr Shape kShapes[] = {{1, 1, 1},    {63, 64, 16}, {65, 65, 17}, {130, 9, 33},
                             {129, 8, 15}, {5, 1, 40},   {3, 70, 0},   {2, 3, 2500}};
constexpr int64_t kGap = 3;

struct Result {
  std::vector<float> got;
  std::vector<double> expected;
};

double ElementOf(const std::vector<float>& m, bool transposed, int64_t stride, int64_t i,
                 int64_t j) {
  return transposed ? m[j * stride + i] : m[i * stride + j];
}

// The product of two random factors a and b, each stored transposed or not, with gaps between rows.
Result Product(TestDevice* device, const Shape& shape, bool transpose_a, bool transpose_b,
               bool in_pieces) {
  const auto [rows, cols, k] = shape;
  const int64_t a_stride = (transpose_a ? rows : k) + kGap;
  const int64_t b_stride = (transpose_b ? k : cols) + kGap;
  const auto a = RandomValues((transpose_a ? k : rows) * a_stride, 1);
  const auto b = RandomValues((transpose_b ? cols : k) * b_stride, 2);
  const ConstValues of_a = {device->Put(a), 0, 0, a_stride};
  const ConstValues of_b = {device->Put(b), 0, 0, b_stride};
  float* const c = device->Room<float>(rows * cols);
  const MatrixProduct product = {transpose_a ? Transposed(of_a) : FactorOf(of_a),
                                 transpose_b ? Transposed(of_b) : FactorOf(of_b),
                                 MatrixOf(c, rows, cols), k};
  if (in_pieces) {
    MultiplyInPieces(device->stream(), product,
                     device->Room<float>(ProductPartials(rows, cols, k)));
  } else {
    Multiply(device->stream(), product);
  }
  Result result = {device->Get(c, rows * cols), {}};
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      double sum = 0;
      for (int64_t n = 0; n < k; ++n) {
        sum +=
            ElementOf(a, transpose_a, a_stride, i, n) * ElementOf(b, transpose_b, b_stride, n, j);
      }
      result.expected.push_back(sum);
    }
  }
  return result;
}

TEST_P(KernelTest, ProductsAreThoseOfALoop) {
  for (const Shape& shape : kShapes) {
    for (int variant = 0; variant < 8; ++variant) {
      const Result result =
          Product(&device_, shape, (variant & 1) != 0, (variant & 2) != 0, (variant & 4) != 0);
      for (size_t i = 0; i < result.got.size(); ++i) {
        ASSERT_NEAR(result.got[i], result.expected[i], 2e-6 * (1 + static_cast<double>(shape.k)))
            << shape.rows << " " << shape.cols << " " << shape.k << ", variant " << variant;
      }
    }
  }
}

TEST_P(KernelTest, BiasActivationAndAddComeAfterTheSum) {
  const float* const x = device_.Put(std::vector<float>{1, 2, 3, -4});
  const float* const bias = device_.Put(std::vector<float>{1, -20});
  float* const c = device_.Put(std::vector<float>{100, 100, 100, 100});
  MatrixProduct product = {FactorOf(MatrixOf(x, 2, 2)), FactorOf(MatrixOf(x, 2, 2)),
                           MatrixOf(c, 2, 2), 2};
  // The product of the matrix at x with itself is {7, -6, -9, 22}.
  product.bias = MatrixOf(bias, 1, 2);
  product.activation = Activation::kRelu;
  Multiply(device_.stream(), product);
  EXPECT_EQ(device_.Get(c, 4), (std::vector<float>{8, 0, 0, 2}));
  product.add = true;
  Multiply(device_.stream(), product);
  EXPECT_EQ(device_.Get(c, 4), (std::vector<float>{16, 0, 0, 4}));
}

// 1 + 2^-7 is a BF16 and an F16, but its square is neither: products must be exact in the sum,
// which is rounded once.
TEST_P(KernelTest, SixteenBitFactorsAreMultipliedInF32) {
  constexpr int64_t kTerms = 40;
  const float factor = 1 + 0x1p-7f;
  const auto* const a = device_.Put(std::vector<Bf16>(kTerms, FromFloat<Bf16>(factor)));
  const auto* const b = device_.Put(std::vector<Half>(kTerms, FromFloat<Half>(factor)));
  float* const full = device_.Room<float>(1);
  Half* const half = device_.Room<Half>(1);
  for (const bool in_half : {false, true}) {
    MatrixProduct product = {FactorOf(MatrixOf(a, 1, kTerms)), FactorOf(MatrixOf(b, kTerms, 1)),
                             MatrixOf(full, 1, 1), kTerms};
    if (in_half) product.c = MatrixOf(half, 1, 1);
    Multiply(device_.stream(), product);
  }
  EXPECT_EQ(device_.Get(full, 1)[0], kTerms * factor * factor);
  EXPECT_EQ(ToFloat(device_.Get(half, 1)[0]), ToFloat(FromFloat<Half>(kTerms * factor * factor)));
}

TEST_P(KernelTest, ProductsHaveTheSameBitsInEveryOrder) {
  TestDevice forward;
  const Shape shape = {70, 66, 3000};
  EXPECT_EQ(Product(&device_, shape, true, false, true).got,
            Product(&forward, shape, true, false, true).got);
}

}  // namespace
}  // namespace satrap
