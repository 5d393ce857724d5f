#include "nn_worker/device/kernels/batched_product.h"

#include <cmath>
#include <vector>

#include "common/numeric/half.h"
#include "gtest/gtest.h"
#include "nn_worker/device/float16.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 7, kCount = 3;

struct Shape {
  int64_t rows, cols, inner;
};
// The last three are large enough for tiles. Two products of the last one fit into a block.
constexpr Shape kShapes[] = {{1, 1, 1},  {5, 3, 8},  {4, 8, 4},   {3, 9, 1},
                             {9, 10, 5}, {8, 33, 4}, {26, 26, 32}};

// The layout of matrices in rows of `wide` values, transposed or not. At() returns the position of
// element (i, j) of matrix m of sample s.
struct Layout {
  int64_t wide, step, row_stride, col_stride;
  int64_t At(int64_t s, int64_t m, int64_t i, int64_t j) const {
    return s * wide + m * step + i * row_stride + j * col_stride;
  }
};

Layout LayoutOf(int64_t rows, int64_t cols, bool transposed, int64_t gap) {
  if (transposed) return {kCount * cols * (rows + gap) + 4, cols * (rows + gap), 1, rows + gap};
  return {kCount * rows * (cols + gap) + 4, rows * (cols + gap), cols + gap, 1};
}

struct Result {
  std::vector<float> got;
  std::vector<double> expected;
};

Result Product(TestDevice* device, const Shape& shape, int variant) {
  const auto [rows, cols, inner] = shape;
  const int64_t gap = (variant & 16) != 0 ? 0 : (variant & 4) != 0 ? 4 : 1;
  const Layout of_a = LayoutOf(rows, inner, (variant & 1) != 0, gap);
  const Layout of_b = LayoutOf(inner, cols, (variant & 2) != 0, gap);
  const Layout of_y = LayoutOf(rows, cols, false, gap);
  const bool add = (variant & 8) != 0;
  const auto a = RandomValues(kSamples * of_a.wide, 1), b = RandomValues(kSamples * of_b.wide, 2);
  const auto y = RandomValues(kSamples * of_y.wide, 3);
  float* const out = device->Put(y);
  BatchedProductArgs args = {};
  args.a = {{device->Put(a), kSamples, of_a.wide, of_a.wide},
            of_a.step,
            of_a.row_stride,
            of_a.col_stride};
  args.b = {{device->Put(b), kSamples, of_b.wide, of_b.wide},
            of_b.step,
            of_b.row_stride,
            of_b.col_stride};
  args.y = {out, kSamples, of_y.wide, of_y.wide};
  args.y_step = of_y.step;
  args.y_stride = of_y.row_stride;
  args.rows = rows;
  args.cols = cols;
  args.inner = inner;
  args.count = kCount;
  args.scale = 0.5f;
  args.add = add;
  BatchedProduct(device->stream(), args);
  Result result = {device->Get(out, kSamples * of_y.wide), {y.begin(), y.end()}};
  for (int64_t s = 0; s < kSamples; ++s) {
    for (int64_t m = 0; m < kCount; ++m) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < inner; ++k) {
            sum += static_cast<double>(a[of_a.At(s, m, i, k)]) * b[of_b.At(s, m, k, j)];
          }
          double& value = result.expected[of_y.At(s, m, i, j)];
          value = 0.5 * sum + (add ? value : 0);
        }
      }
    }
  }
  return result;
}

// Also compares the values between the matrices, which must not change.
TEST_P(KernelTest, ProductsOfEachSampleAreThoseOfALoop) {
  for (const Shape& shape : kShapes) {
    for (int variant = 0; variant < 32; ++variant) {
      const Result result = Product(&device_, shape, variant);
      for (size_t i = 0; i < result.got.size(); ++i) {
        ASSERT_NEAR(result.got[i], result.expected[i], 1e-5)
            << shape.rows << " " << shape.cols << " " << shape.inner << ", variant " << variant;
      }
    }
  }
}

TEST_P(KernelTest, BatchedProductsHaveTheSameBitsInEveryOrder) {
  TestDevice forward;
  for (const Shape& shape : {Shape{5, 3, 8}, Shape{26, 26, 32}}) {
    EXPECT_EQ(Product(&device_, shape, 0).got, Product(&forward, shape, 0).got);
  }
}

// Tests the scores of attention in BF16: the vectors of two heads are side by side, and the
// matrices of scores follow one another. Values are multiples of 1/8, so that the products are
// exact.
TEST_P(KernelTest, ScoresOfHeadsAreThoseOfALoop) {
  constexpr int64_t kFields = 26, kHeads = 2, kDim = 32, kWide = kFields * kHeads * kDim;
  constexpr int64_t kScores = kHeads * kFields * kFields;
  const auto eighths = [](uint64_t seed) {
    std::vector<float> values = RandomValues(kSamples * kWide, seed);
    for (float& value : values) value = std::round(value * 4) / 8;
    return values;
  };
  const auto put = [&](const std::vector<float>& values) {
    std::vector<Bf16> halves;
    for (const float value : values) halves.push_back({Bf16FromF32(value)});
    return ConstValues(device_.Put(halves), kSamples, kWide, kWide);
  };
  const std::vector<float> a = eighths(1), b = eighths(2);
  Bf16* const y = device_.Room<Bf16>(kSamples * kScores);
  BatchedProductArgs args = {};
  args.a = {put(a), kDim, kHeads * kDim, 1};
  args.b = {put(b), kDim, 1, kHeads * kDim};
  args.y = {y, kSamples, kScores, kScores};
  args.y_step = kFields * kFields;
  args.y_stride = kFields;
  args.rows = args.cols = kFields;
  args.inner = kDim;
  args.count = kHeads;
  args.scale = 1;
  BatchedProduct(device_.stream(), args);
  const std::vector<Bf16> got = device_.Get(y, kSamples * kScores);
  for (int64_t at = 0; at < kSamples * kScores; ++at) {
    const int64_t s = at / kScores, m = at % kScores / (kFields * kFields);
    const int64_t i = at / kFields % kFields, j = at % kFields;
    float sum = 0;
    for (int64_t k = 0; k < kDim; ++k) {
      sum +=
          a[s * kWide + (i * kHeads + m) * kDim + k] * b[s * kWide + (j * kHeads + m) * kDim + k];
    }
    ASSERT_EQ(got[at].bits, Bf16FromF32(sum)) << at;
  }
}

}  // namespace
}  // namespace satrap
