// The part of HalfConformance that is about feature interactions (interaction_operations.h).

#include <vector>

#include "nn_worker/backend/testing/half_conformance.h"

namespace satrap {
namespace {

constexpr DType kHalves[] = {DType::kF16, DType::kBF16};
constexpr int64_t kRows = 70;

}  // namespace

TEST_P(HalfConformance, ElementwiseInteractionsAreTheReferences) {
  for (const DType dtype : kHalves) {
    for (const bool add : {false, true}) {
      const Twin a = RandomTwin(dtype, kRows, 12, 1, 17), b = RandomTwin(dtype, kRows, 12, 2);
      const Twin scaled = RandomTwin(dtype, kRows, 12, 3, 13);
      backend_->Scale(0.5f, a.half, scaled.half, add);
      reference_->Scale(0.5f, a.want, scaled.want, add);
      ExpectTwins(scaled);
      const Twin product = RandomTwin(dtype, kRows, 12, 4);
      backend_->Multiply(a.half, b.half, product.half, add);
      reference_->Multiply(a.want, b.want, product.want, add);
      ExpectTwins(product);
      const Twin transposed = RandomTwin(dtype, kRows, 12, 5);
      backend_->Transpose(a.half, 4, transposed.half, add);
      reference_->Transpose(a.want, 4, transposed.want, add);
      ExpectTwins(transposed);
    }
  }
}

// The products are a part of their tensor, whose other values must stay.
TEST_P(HalfConformance, BatchedProductsAreTheReferences) {
  for (const DType dtype : kHalves) {
    for (const bool add : {false, true}) {
      const Twin a = RandomTwin(dtype, kRows, 12, 1), b = RandomTwin(dtype, kRows, 24, 2, 30);
      const Twin y = RandomTwin(dtype, kRows, 20, 3);
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
    const std::vector<Twin> xs = {RandomTwin(dtype, kRows, 4, 1), RandomTwin(dtype, kRows, 8, 2)};
    const Twin y = RandomTwin(dtype, kRows, 3, 3);
    backend_->PairDots(Halves(xs), terms, 4, y.half);
    reference_->PairDots(Wants(xs), terms, 4, y.want);
    ExpectTwins(y);
    const Twin dy = RandomTwin(dtype, kRows, 3, 4);
    const Twin first = RandomTwin(dtype, kRows, 4, 5), second = RandomTwin(dtype, kRows, 8, 6);
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
    const Twin x = RandomTwin(dtype, kRows, 6, 1), dy = RandomTwin(dtype, kRows, 6, 2);
    const Twin s = RandomTwin(dtype, kRows, 6, 3), y = RandomTwin(dtype, kRows, 6, 4);
    backend_->BiInteraction({x.half, x.half}, s.half, y.half);
    reference_->BiInteraction({x.want, x.want}, s.want, y.want);
    ExpectTwins(y);
    const Twin dx = RandomTwin(dtype, kRows, 6, 5);
    backend_->BiInteractionGrad({x.half, x.half}, s.half, dy.half,
                                {dx.HalfTarget(false), dx.HalfTarget(true)});
    reference_->BiInteractionGrad({x.want, x.want}, TwinOf(s.half).want, dy.want,
                                  {dx.WantTarget(false), dx.WantTarget(true)});
    ExpectTwins(dx);
  }
}

TEST_P(HalfConformance, SoftmaxAndNormalizationAreTheReferences) {
  for (const DType dtype : kHalves) {
    const Twin x = RandomTwin(dtype, kRows, 12, 1, 19), dy = RandomTwin(dtype, kRows, 12, 2);
    const Twin y = RandomTwin(dtype, kRows, 12, 3), dx = RandomTwin(dtype, kRows, 12, 4);
    backend_->Softmax(x.half, 6, y.half);
    reference_->Softmax(x.want, 6, y.want);
    ExpectTwins(y);
    backend_->SoftmaxGrad(y.half, dy.half, 6, dx.HalfTarget(true));
    reference_->SoftmaxGrad(TwinOf(y.half).want, dy.want, 6, dx.WantTarget(true));
    ExpectTwins(dx);
    for (const Normalization kind : {Normalization::kLayer, Normalization::kL2}) {
      const Tensor inverse = New(kRows, 2), want_inverse = NewReference(kRows, 2);
      const Twin normal = RandomTwin(dtype, kRows, 12, 5), into = RandomTwin(dtype, kRows, 12, 6);
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

}  // namespace satrap
