// The part of half_conformance.h that is about prepared linear layers.

#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/testing/half_conformance.h"

namespace satrap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HalfLinearConformance);

namespace {

constexpr Activation kActivations[] = {Activation::kLinear, Activation::kRelu,
                                       Activation::kSigmoid};

struct LinearShape {
  int64_t n, in, out;
};
constexpr LinearShape kShapes[] = {{0, 9, 8},    {7, 13, 1},    {65, 8, 17},
                                   {90, 45, 40}, {70, 129, 33}, {5, 0, 3}};

// The outputs of the network, a logit or the scores of classes, are F32.
TEST_P(HalfLinearConformance, PreparedLayersAreTheReferences) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const auto& [n, in, out] : kShapes) {
      for (const DType out_dtype : {dtype, DType::kF32}) {
        for (const Activation activation : kActivations) {
          for (const bool add : {false, true}) {
            const Twin x = RandomTwin(dtype, n, in, 1, in + 3);
            const Twin w = RandomTwin(dtype, in, out, 2, PaddedStride(dtype, out));
            const Twin dy = out_dtype == DType::kF32 ? TwinOf(Random(n, out, 4, out + 1))
                                                     : RandomTwin(dtype, n, out, 4, out + 1);
            const Twin dx = RandomTwin(dtype, n, in, 5, in + 2);
            LinearSpec spec;
            spec.bias = Random(1, out, 3);
            spec.args = {x.half,       w.half,
                         activation,   New(n, out, out + 5, out_dtype),
                         dy.half,      dx.HalfTarget(add),
                         New(in, out), New(1, out)};
            auto layer = backend_->PrepareLinear(spec);
            CHECK_OK(layer.status());
            backend_->LinearForward(layer->get(), x.half, w.half, spec.bias, spec.args.y);
            const Tensor want = NewReference(n, out);
            reference_->Linear(x.want, w.want, Reference(spec.bias), activation, want);
            ExpectTwins({spec.args.y, want});
            // From here on both have the rounded values of the backend.
            reference_->ActivateGrad(activation, TwinOf(spec.args.y).want, dy.want,
                                     {dy.want, /*add=*/false});
            backend_->LinearBackward(layer->get(), spec.args);
            ExpectTwins(dy);
            const Tensor dw = NewReference(in, out), db = NewReference(1, out);
            reference_->LinearGrad({x.want, w.want, Activation::kLinear, want, TwinOf(dy.half).want,
                                    dx.WantTarget(add), dw, db});
            ExpectTwins(dx);
            ExpectNear(spec.args.dw, dw, 5e-5);
            ExpectNear(spec.args.db, db, 5e-5);
          }
        }
      }
    }
  }
}

TEST_P(HalfLinearConformance, TheLastReaderOfAReluMayTakeItsGradientAlong) {
  constexpr int64_t kSamples = 50, kIn = 24, kHidden = 40, kOut = 16;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const Twin x = RandomTwin(dtype, kSamples, kIn, 1), w1 = RandomTwin(dtype, kIn, kHidden, 2);
    const Twin w2 = RandomTwin(dtype, kHidden, kOut, 3), dy = RandomTwin(dtype, kSamples, kOut, 4);
    const Tensor hidden = New(kSamples, kHidden, 0, dtype), y = New(kSamples, kOut, 0, dtype);
    const Tensor dhidden = New(kSamples, kHidden, 0, dtype);
    LinearSpec first, second;
    first.bias = Random(1, kHidden, 5);
    first.args = {x.half,  w1.half, Activation::kRelu, hidden,
                  dhidden, {},      New(kIn, kHidden), New(1, kHidden)};
    second.args = {hidden,  w2.half,          Activation::kLinear, y,
                   dy.half, {dhidden, false}, New(kHidden, kOut),  Tensor()};
    auto before = backend_->PrepareLinear(first);
    CHECK_OK(before.status());
    second.input_relu = before->get();
    auto behind = backend_->PrepareLinear(second);
    CHECK_OK(behind.status());
    backend_->LinearForward(before->get(), x.half, w1.half, first.bias, hidden);
    backend_->LinearForward(behind->get(), hidden, w2.half, Tensor(), y);
    backend_->LinearBackward(behind->get(), second.args);
    backend_->LinearBackward(before->get(), first.args);
    // The backend's activations and rounded gradient, so that only sums differ.
    const Tensor z = NewReference(kSamples, kHidden), dz = NewReference(kSamples, kHidden);
    const Tensor dw1 = NewReference(kIn, kHidden), dw2 = NewReference(kHidden, kOut);
    const Tensor db1 = NewReference(1, kHidden);
    reference_->Linear(x.want, w1.want, Reference(first.bias), Activation::kRelu, z);
    ExpectTwins({hidden, z});
    reference_->LinearGrad({TwinOf(hidden).want,
                            w2.want,
                            Activation::kLinear,
                            TwinOf(y).want,
                            dy.want,
                            {dz, false},
                            dw2,
                            Tensor()});
    reference_->ActivateGrad(Activation::kRelu, TwinOf(hidden).want, dz, {dz, false});
    ExpectTwins({dhidden, dz});
    ExpectNear(second.args.dw, dw2, 5e-5);
    reference_->LinearGrad(
        {x.want, w1.want, Activation::kLinear, z, TwinOf(dhidden).want, {}, dw1, db1});
    ExpectNear(first.args.dw, dw1, 5e-5);
    ExpectNear(first.args.db, db1, 5e-5);
  }
}

}  // namespace
}  // namespace satrap
