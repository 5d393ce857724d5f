// The part of backend_conformance.h and half_conformance.h for interaction_operations.h.

#include <cmath>
#include <cstring>
#include <limits>

#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/half_conformance.h"

namespace satrap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InteractionConformance);

namespace {

// Sizes around those at which loops are divided: no rows, one row, less than a piece, several
// pieces.
constexpr int64_t kRows[] = {0, 1, 19, 133};

// All pairs of the first vectors of `fields` tensors, and one pair of a vector and a later vector
// of the same tensor. Vectors have `dim` values.
std::vector<PairTerm> AllPairs(int fields, int dim) {
  std::vector<PairTerm> terms;
  for (int i = 0; i < fields; ++i) {
    for (int j = i + 1; j < fields; ++j) terms.push_back({i, 0, j, dim});
  }
  terms.push_back({0, 0, 0, dim});
  return terms;
}

TEST_P(InteractionConformance, ScaleAndMultiplyAreTheReferences) {
  for (const int64_t n : kRows) {
    for (const bool add : {false, true}) {
      const Tensor x = Random(n, 24, 1, 27), y = Random(n, 24, 2, 25);
      const Tensor want = Reference(y);
      backend_->Scale(-1.5f, x, y, add);
      reference_->Scale(-1.5f, Reference(x), want, add);
      ExpectNear(y, want, 1e-6);
      for (const Tensor& b : {Random(n, 24, 3, 32), Random(n, 1, 4, 3), Random(1, 8, 5)}) {
        backend_->Multiply(x, b, y, add);
        reference_->Multiply(Reference(x), Reference(b), want, add);
        ExpectNear(y, want, 2e-6);
      }
    }
  }
}

TEST_P(InteractionConformance, MultiplyByHand) {
  const Tensor a = Of({{1, 2, 3, 4}, {5, 6, 7, 8}}), y = New(2, 4);
  backend_->Multiply(a, Of({{1, 0, 2, -1}, {1, 1, 1, 1}}), y, /*add=*/false);
  EXPECT_EQ(Values(y), (std::vector<float>{1, 0, 6, -4, 5, 6, 7, 8}));
  backend_->Multiply(a, Of({{10}, {100}}), y, /*add=*/false);
  EXPECT_EQ(Values(y), (std::vector<float>{10, 20, 30, 40, 500, 600, 700, 800}));
  backend_->Multiply(a, Of({{1, 2}}), y, /*add=*/true);
  EXPECT_EQ(Values(y), (std::vector<float>{11, 24, 33, 48, 505, 612, 707, 816}));
}

TEST_P(InteractionConformance, TransposeByHand) {
  const Tensor x = Of({{1, 2, 3, 4, 5, 6}}), y = Of({{9, 9, 9, 9, 9, 9}});
  backend_->Transpose(x, 3, y, /*add=*/false);
  EXPECT_EQ(Values(y), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  // Transposing again, with the other width, restores the matrix.
  const Tensor back = Of({{1, 1, 1, 1, 1, 1}});
  backend_->Transpose(y, 2, back, /*add=*/true);
  EXPECT_EQ(Values(back), (std::vector<float>{2, 3, 4, 5, 6, 7}));
}

TEST_P(InteractionConformance, TransposeIsTheReferences) {
  for (const int64_t n : kRows) {
    const Tensor x = Random(n, 5 * 37, 1, 190), y = Random(n, 5 * 37, 2, 186);
    const Tensor want = Reference(y);
    backend_->Transpose(x, 37, y, /*add=*/true);
    reference_->Transpose(Reference(x), 37, want, /*add=*/true);
    ExpectNear(y, want, 1e-6);
  }
}

TEST_P(InteractionConformance, BatchedProductByHand) {
  // The sample has two matrices side by side, like the heads of attention: [1 2; 3 4] and [5 6; 7
  // 8].
  const Tensor a = Of({{1, 2, 5, 6, 3, 4, 7, 8}}), b = Of({{1, 10, 100, 1000}}), y = New(1, 4);
  const SampleMatrices pair = {a, 2, 2, 4, 2};
  const SampleMatrices columns = {b, 2, 1, 1, 2};
  backend_->BatchedProduct(pair, columns, 2, 2, {y, 2, 1, 1, 2}, /*add=*/false);
  EXPECT_EQ(Values(y), (std::vector<float>{42, 86, 2 * 6500, 2 * 8700}));
  SampleMatrices transposed = pair;
  transposed.transposed = true;
  backend_->BatchedProduct(transposed, columns, 2, 1, {y, 2, 1, 1, 2}, /*add=*/true);
  EXPECT_EQ(Values(y), (std::vector<float>{42 + 31, 86 + 42, 13000 + 7500, 17400 + 8600}));
}

TEST_P(InteractionConformance, BatchedProductIsTheReferences) {
  struct Shape {
    int64_t m, n, k;
  };
  for (const auto& [m, n, k] :
       {Shape{1, 1, 1}, {10, 10, 32}, {7, 39, 1}, {3, 1, 20}, {5, 17, 33}}) {
    for (const int transposed : {0, 1, 2, 3}) {
      for (const int64_t rows : kRows) {
        constexpr int64_t kCount = 2;
        const bool ta = transposed % 2 == 1, tb = transposed / 2 == 1;
        // The matrices of y are side by side. Those of a and b follow one another, with gaps.
        const Tensor a = Random(rows, kCount * (m * k + m + k), 1, kCount * (m * k + m + k) + 3);
        const Tensor b = Random(rows, kCount * (n * k + n + k), 2);
        const Tensor y = Random(rows, kCount * m * n, 3);
        const Tensor want = Reference(y);
        SampleMatrices of_a = {a, ta ? k : m, ta ? m : k, (ta ? m : k) + 1, m * k + m + k, ta};
        SampleMatrices of_b = {b, tb ? n : k, tb ? k : n, (tb ? k : n) + 1, n * k + n + k, tb};
        const SampleMatrices of_y = {y, m, n, kCount * n, n};
        for (const bool add : {false, true}) {
          backend_->BatchedProduct(of_a, of_b, kCount, 0.5f, of_y, add);
        }
        of_a.tensor = Reference(a);
        of_b.tensor = Reference(b);
        for (const bool add : {false, true}) {
          reference_->BatchedProduct(of_a, of_b, kCount, 0.5f, {want, m, n, kCount * n, n}, add);
        }
        ExpectNear(y, want, 1e-5);
      }
    }
  }
}

TEST_P(InteractionConformance, PairDotsByHand) {
  const std::vector<Tensor> xs = {Of({{1, 2, 3, 4}}), Of({{5, 6}})};
  const std::vector<PairTerm> terms = {{0, 0, 1, 0}, {0, 2, 1, 0}, {0, 0, 0, 2}};
  const Tensor y = New(1, 3);
  backend_->PairDots(xs, terms, 2, y);
  EXPECT_EQ(Values(y), (std::vector<float>{17, 39, 11}));
  const Tensor da = Of({{7, 7, 7, 7}}), db = Of({{7, 7}});
  backend_->PairDotsGrad(xs, terms, 2, Of({{1, 10, 100}}), {{da, false}, {db, true}});
  EXPECT_EQ(Values(da), (std::vector<float>{5 + 300, 6 + 400, 50 + 100, 60 + 200}));
  EXPECT_EQ(Values(db), (std::vector<float>{7 + 1 + 30, 7 + 2 + 40}));
}

TEST_P(InteractionConformance, PairDotsAreTheReferences) {
  for (const int dim : {1, 10, 16, 21}) {
    for (const int64_t n : kRows) {
      std::vector<Tensor> xs;
      std::vector<GradientTarget> dxs, want_dxs;
      for (int f = 0; f < 5; ++f) {
        xs.push_back(Random(n, 2 * dim + 1, f, 2 * dim + 3));
        const Tensor dx = Random(n, 2 * dim + 1, 10 + f, 2 * dim + 2);
        dxs.push_back({dx, f % 2 == 1});
        want_dxs.push_back({Reference(dx), f % 2 == 1});
      }
      dxs[3] = {};
      want_dxs[3] = {};
      const std::vector<PairTerm> terms = AllPairs(5, dim);
      const int64_t count = static_cast<int64_t>(terms.size());
      const Tensor y = New(n, count, count + 1), want = NewReference(n, count);
      backend_->PairDots(xs, terms, dim, y);
      reference_->PairDots(References(xs), terms, dim, want);
      ExpectNear(y, want, 1e-5);
      const Tensor dy = Random(n, count, 20);
      backend_->PairDotsGrad(xs, terms, dim, dy, dxs);
      reference_->PairDotsGrad(References(xs), terms, dim, Reference(dy), want_dxs);
      for (const int f : {0, 1, 2, 4}) ExpectNear(dxs[f].tensor, want_dxs[f].tensor, 1e-5);
    }
  }
}

// Some vectors overlap, and one tensor is passed as two inputs, as by a layer that reads an input
// twice.
TEST_P(InteractionConformance, GradientsOfVectorsThatOverlapAreSummed) {
  const std::vector<PairTerm> terms = {{0, 0, 1, 4}, {0, 3, 0, 5}, {1, 1, 0, 2}, {2, 0, 1, 6}};
  for (const bool add : {false, true}) {
    const Tensor x = Random(19, 11, 1, 12), other = Random(19, 11, 2), dy = Random(19, 4, 3);
    const Tensor dx = Random(19, 11, 4), dother = Random(19, 11, 5, 14);
    const Tensor want_dx = Reference(dx), want_dother = Reference(dother);
    backend_->PairDotsGrad({x, x, other}, terms, 5, dy, {{dx, add}, {dx, true}, {dother, add}});
    reference_->PairDotsGrad({Reference(x), Reference(x), Reference(other)}, terms, 5,
                             Reference(dy), {{want_dx, add}, {want_dx, true}, {want_dother, add}});
    ExpectNear(dx, want_dx, 1e-5);
    ExpectNear(dother, want_dother, 1e-5);
  }
}

// A sample's scores must not change with the number of ranks.
TEST_P(InteractionConformance, PairDotsOfARowDoNotDependOnTheOthers) {
  const std::vector<Tensor> xs = {Random(50, 42, 1), Random(50, 42, 2)};
  const std::vector<PairTerm> terms = AllPairs(2, 21);
  const Tensor all = New(50, 2), parts = New(50, 2);
  backend_->PairDots(xs, terms, 21, all);
  for (int64_t begin = 0; begin < 50; begin += 5) {
    backend_->PairDots({xs[0].Rows(begin, 5), xs[1].Rows(begin, 5)}, terms, 21,
                       parts.Rows(begin, 5));
  }
  EXPECT_EQ(Values(all), Values(parts));
}

TEST_P(InteractionConformance, BiInteractionIsTheReferences) {
  for (const int64_t n : kRows) {
    const std::vector<Tensor> xs = {Random(n, 21, 1, 25), Random(n, 21, 2), Random(n, 21, 3)};
    const Tensor s = New(n, 21), y = New(n, 21, 23), dy = Random(n, 21, 4);
    const Tensor want_s = NewReference(n, 21), want = NewReference(n, 21);
    backend_->BiInteraction(xs, s, y);
    reference_->BiInteraction(References(xs), want_s, want);
    ExpectNear(y, want, 1e-6);
    ExpectNear(s, want_s, 1e-6);
    const Tensor dx = Random(n, 21, 5, 22), added = Random(n, 21, 6);
    const Tensor want_dx = Reference(dx), want_added = Reference(added);
    backend_->BiInteractionGrad(xs, s, dy, {{dx, false}, {}, {added, true}});
    reference_->BiInteractionGrad(References(xs), Reference(s), Reference(dy),
                                  {{want_dx, false}, {}, {want_added, true}});
    ExpectNear(dx, want_dx, 1e-6);
    ExpectNear(added, want_added, 1e-6);
  }
}

TEST_P(InteractionConformance, SoftmaxByHand) {
  // For some values exp overflows. One group has a NaN, which must not affect the other group.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Of({{1000, 1000, -1000, -1000}, {0, nan, 0, 0}}), y = New(2, 4);
  backend_->Softmax(x, 2, y);
  const std::vector<float> got = Values(y);
  EXPECT_EQ((std::vector<float>{got.begin(), got.begin() + 4}),
            (std::vector<float>{.5f, .5f, .5f, .5f}));
  EXPECT_TRUE(std::isnan(got[4]) && std::isnan(got[5]));
  EXPECT_EQ(got[6], .5f);
}

TEST_P(InteractionConformance, SoftmaxIsTheReferences) {
  for (const int64_t width : {1, 10, 35}) {
    for (const int64_t n : kRows) {
      const int64_t cols = 3 * width;
      const Tensor x = Random(n, cols, 1, cols + 1), y = New(n, cols, cols + 2);
      const Tensor want = NewReference(n, cols), dy = Random(n, cols, 2);
      backend_->Softmax(x, width, y);
      reference_->Softmax(Reference(x), width, want);
      ExpectNear(y, want, 1e-6);
      for (const bool add : {false, true}) {
        const GradientTarget dx = {Random(n, cols, 3), add};
        const GradientTarget want_dx = {Reference(dx.tensor), add};
        backend_->SoftmaxGrad(y, dy, width, dx);
        reference_->SoftmaxGrad(Reference(y), Reference(dy), width, want_dx);
        ExpectNear(dx.tensor, want_dx.tensor, 1e-6);
      }
    }
  }
}

TEST_P(InteractionConformance, NormalizeIsTheReferences) {
  for (const Normalization kind : {Normalization::kLayer, Normalization::kL2}) {
    for (const int64_t width : {2, 16, 35}) {
      for (const int64_t n : kRows) {
        const int64_t cols = 2 * width;
        const Tensor x = Random(n, cols, 1, cols + 1), y = New(n, cols, cols + 2);
        const Tensor inverse = New(n, 2), dy = Random(n, cols, 2);
        const Tensor want = NewReference(n, cols), want_inverse = NewReference(n, 2);
        backend_->Normalize(kind, x, width, 1e-5f, y, inverse);
        reference_->Normalize(kind, Reference(x), width, 1e-5f, want, want_inverse);
        ExpectNear(y, want, 1e-5);
        for (const bool add : {false, true}) {
          const GradientTarget dx = {Random(n, cols, 3), add};
          const GradientTarget want_dx = {Reference(dx.tensor), add};
          backend_->NormalizeGrad(kind, y, inverse, dy, width, dx);
          reference_->NormalizeGrad(kind, Reference(y), Reference(inverse), Reference(dy), width,
                                    want_dx);
          ExpectNear(dx.tensor, want_dx.tensor, 1e-3);
        }
      }
    }
  }
}

TEST_P(InteractionConformance, NormalizeByHand) {
  const Tensor x = Of({{3, 4, 0, 0}}), y = New(1, 4), inverse = New(1, 2);
  backend_->Normalize(Normalization::kL2, x, 2, 1e-12f, y, inverse);
  EXPECT_EQ(Values(y), (std::vector<float>{.6f, .8f, 0, 0}));
  EXPECT_EQ(Values(inverse)[0], .2f);
  backend_->Normalize(Normalization::kLayer, x, 4, 0.1875f, y, New(1, 1));
  // The mean is 1.75 and the variance 3.1875. With epsilon, the divisor is the root of 3.375.
  EXPECT_NEAR(Values(y)[0], 1.25 / std::sqrt(3.375), 1e-6);
}

constexpr int64_t kHalfRows = 70;

TEST_P(HalfConformance, ElementwiseInteractionsAreTheReferences) {
  for (const DType dtype : kHalves) {
    for (const bool add : {false, true}) {
      const Twin a = RandomTwin(dtype, kHalfRows, 12, 1, 17),
                 b = RandomTwin(dtype, kHalfRows, 12, 2);
      const Twin scaled = RandomTwin(dtype, kHalfRows, 12, 3, 13);
      backend_->Scale(0.5f, a.half, scaled.half, add);
      reference_->Scale(0.5f, a.want, scaled.want, add);
      ExpectTwins(scaled);
      const Twin product = RandomTwin(dtype, kHalfRows, 12, 4);
      backend_->Multiply(a.half, b.half, product.half, add);
      reference_->Multiply(a.want, b.want, product.want, add);
      ExpectTwins(product);
      const Twin transposed = RandomTwin(dtype, kHalfRows, 12, 5);
      backend_->Transpose(a.half, 4, transposed.half, add);
      reference_->Transpose(a.want, 4, transposed.want, add);
      ExpectTwins(transposed);
    }
  }
}

// The products are written to a part of their tensor, whose other values must stay the same.
TEST_P(HalfConformance, BatchedProductsAreTheReferences) {
  for (const DType dtype : kHalves) {
    for (const bool add : {false, true}) {
      const Twin a = RandomTwin(dtype, kHalfRows, 12, 1),
                 b = RandomTwin(dtype, kHalfRows, 24, 2, 30);
      const Twin y = RandomTwin(dtype, kHalfRows, 20, 3);
      const auto product = [&](Backend* backend, Tensor a, Tensor b, Tensor y) {
        backend->BatchedProduct({a, 2, 3, 3, 6, false}, {b, 3, 4, 4, 12, false}, 2, 0.5f,
                                {y, 2, 4, 4, 8, false}, add);
      };
      product(backend_.get(), a.half, b.half, y.half);
      product(reference_.get(), a.want, b.want, y.want);
      ExpectTwins(y);
    }
  }
}

TEST_P(HalfConformance, PairDotsAndTheirGradientsAreTheReferences) {
  const std::vector<PairTerm> terms = {{0, 0, 1, 4}, {1, 0, 1, 4}, {0, 0, 1, 0}};
  for (const DType dtype : kHalves) {
    const std::vector<Twin> xs = {RandomTwin(dtype, kHalfRows, 4, 1),
                                  RandomTwin(dtype, kHalfRows, 8, 2)};
    const Twin y = RandomTwin(dtype, kHalfRows, 3, 3);
    backend_->PairDots(Halves(xs), terms, 4, y.half);
    reference_->PairDots(Wants(xs), terms, 4, y.want);
    ExpectTwins(y);
    const Twin dy = RandomTwin(dtype, kHalfRows, 3, 4);
    const Twin first = RandomTwin(dtype, kHalfRows, 4, 5),
               second = RandomTwin(dtype, kHalfRows, 8, 6);
    backend_->PairDotsGrad(Halves(xs), terms, 4, dy.half,
                           {first.HalfTarget(true), second.HalfTarget(false)});
    reference_->PairDotsGrad(Wants(xs), terms, 4, dy.want,
                             {first.WantTarget(true), second.WantTarget(false)});
    ExpectTwins(first);
    ExpectTwins(second);
  }
}

TEST_P(HalfConformance, AGradientThatTwoInputsShareGetsBothTerms) {
  for (const DType dtype : kHalves) {
    const Twin x = RandomTwin(dtype, kHalfRows, 6, 1), dy = RandomTwin(dtype, kHalfRows, 6, 2);
    const Twin s = RandomTwin(dtype, kHalfRows, 6, 3), y = RandomTwin(dtype, kHalfRows, 6, 4);
    backend_->BiInteraction({x.half, x.half}, s.half, y.half);
    reference_->BiInteraction({x.want, x.want}, s.want, y.want);
    ExpectTwins(y);
    const Twin dx = RandomTwin(dtype, kHalfRows, 6, 5);
    backend_->BiInteractionGrad({x.half, x.half}, s.half, dy.half,
                                {dx.HalfTarget(false), dx.HalfTarget(true)});
    reference_->BiInteractionGrad({x.want, x.want}, TwinOf(s.half).want, dy.want,
                                  {dx.WantTarget(false), dx.WantTarget(true)});
    ExpectTwins(dx);
  }
}

TEST_P(HalfConformance, SoftmaxAndNormalizationAreTheReferences) {
  for (const DType dtype : kHalves) {
    const Twin x = RandomTwin(dtype, kHalfRows, 12, 1, 19),
               dy = RandomTwin(dtype, kHalfRows, 12, 2);
    const Twin y = RandomTwin(dtype, kHalfRows, 12, 3), dx = RandomTwin(dtype, kHalfRows, 12, 4);
    backend_->Softmax(x.half, 6, y.half);
    reference_->Softmax(x.want, 6, y.want);
    ExpectTwins(y);
    backend_->SoftmaxGrad(y.half, dy.half, 6, dx.HalfTarget(true));
    reference_->SoftmaxGrad(TwinOf(y.half).want, dy.want, 6, dx.WantTarget(true));
    ExpectTwins(dx);
    for (const Normalization kind : {Normalization::kLayer, Normalization::kL2}) {
      const Tensor inverse = New(kHalfRows, 2), want_inverse = NewReference(kHalfRows, 2);
      const Twin normal = RandomTwin(dtype, kHalfRows, 12, 5),
                 into = RandomTwin(dtype, kHalfRows, 12, 6);
      backend_->Normalize(kind, x.half, 6, 1e-5f, normal.half, inverse);
      reference_->Normalize(kind, x.want, 6, 1e-5f, normal.want, want_inverse);
      ExpectTwins(normal);
      backend_->NormalizeGrad(kind, normal.half, inverse, dy.half, 6, into.HalfTarget(false));
      reference_->NormalizeGrad(kind, TwinOf(normal.half).want, want_inverse, dy.want, 6,
                                into.WantTarget(false));
      ExpectTwins(into);
    }
  }
}

}  // namespace
}  // namespace satrap
