#include "nn_worker/device/kernels/pair_dots.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/testing/device_testing.h"
#include "nn_worker/device/testing/typed_values.h"

namespace satrap {
namespace {

constexpr int64_t kRows = 11, kCols = 22;

// Tests vectors of 5, 8 and 9 values in rows of 22 and 20 values. Some vectors begin at multiples
// of 4 values, others anywhere.
TEST_P(KernelTest, DotProductsAreThoseOfALoop) {
  for (const int64_t dim : {5, 8, 9}) {
    for (const int64_t cols : {kCols, int64_t{20}}) {
      const RandomMatrices inputs(&device_, 3, kRows, cols);
      const std::vector<DotTerm> terms = {{0, 0, 1, 8}, {1, 4, 1, 3}, {2, 8, 0, 11}, {2, 0, 2, 4}};
      const auto count = static_cast<int64_t>(terms.size());
      float* const y = device_.Room<float>(kRows * count);
      PairDots(device_.stream(), device_.Put(inputs.views), device_.Put(terms), dim,
               MatrixOf(y, kRows, count));
      const auto got = device_.Get(y, kRows * count);
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t t = 0; t < count; ++t) {
          double sum = 0;
          for (int64_t d = 0; d < dim; ++d) {
            sum += static_cast<double>(inputs.host[terms[t].a][i * cols + terms[t].a_column + d]) *
                   inputs.host[terms[t].b][i * cols + terms[t].b_column + d];
          }
          ASSERT_NEAR(got[i * count + t], sum, 1e-5) << i << " " << t << " of " << dim;
        }
      }
    }
  }
}

// There are four pieces: one that is assigned, one that is added to, one without factors, and a
// narrow one. Columns that are in no piece must not change.
TEST_P(KernelTest, GradientsOfPiecesAreThoseOfALoop) {
  const RandomMatrices inputs(&device_, 2, kRows, kCols);
  const auto before = RandomValues(kRows * kCols, 7), slopes = RandomValues(kRows * 3, 8);
  float* const dx = device_.Put(before);
  const Values target = {dx, kRows, kCols, kCols};
  const std::vector<DotFactor> factors = {{0, 0, 2}, {2, 1, 4}, {1, 1, 0}, {0, 1, 12}};
  const std::vector<DotGradPiece> pieces = {{target, 0, 6, 0, 2, 0},
                                            {target, 6, 9, 1, 2, 1},
                                            {target, 15, 4, 0, 0, 0},
                                            {target, 20, 1, 3, 1, 0}};
  PairDotsGrad(device_.stream(), device_.Put(inputs.views), device_.Put(pieces), 4, 9,
               device_.Put(factors), {device_.Put(slopes), kRows, 3, 3});
  const auto got = device_.Get(dx, kRows * kCols);
  std::vector<double> expected(before.begin(), before.end());
  for (int64_t i = 0; i < kRows; ++i) {
    for (const DotGradPiece& piece : pieces) {
      for (int32_t c = 0; c < piece.width; ++c) {
        double sum = piece.add != 0 ? before[i * kCols + piece.column + c] : 0;
        for (int32_t f = piece.first; f < piece.first + piece.count; ++f) {
          sum += static_cast<double>(slopes[i * 3 + factors[f].term]) *
                 inputs.host[factors[f].input][i * kCols + factors[f].column + c];
        }
        expected[i * kCols + piece.column + c] = sum;
      }
    }
  }
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;
}

}  // namespace
}  // namespace satrap
