// The part of backend_conformance.h that is about prepared linear layers.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/backend_conformance.h"

namespace satrap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LinearConformance);

LinearSpec BackendConformance::NewLinear(int64_t n, int64_t in, int64_t out,
                                         Activation activation) {
  LinearSpec spec;
  spec.args.x = Random(n, in, 1, in + 3);
  spec.args.w = Random(in, out, 2);
  spec.args.activation = activation;
  spec.args.y = New(n, out, out + 5);
  spec.args.dy = Random(n, out, 4, out + 1);
  spec.args.dx = {Random(n, in, 5, in + 2), /*add=*/false};
  spec.args.dw = Random(in, out, 6);
  spec.args.db = Random(1, out, 7);
  spec.bias = Random(1, out, 3);
  return spec;
}

namespace {

constexpr Activation kActivations[] = {Activation::kLinear, Activation::kRelu, Activation::kSigmoid,
                                       Activation::kTanh};

struct LinearShape {
  int64_t n, in, out;
};
// Shapes at the border of what a library is asked for, and those of BackendConformance.
constexpr LinearShape kShapes[] = {{0, 9, 8},    {1, 1, 1},     {7, 13, 1},
                                   {64, 16, 8},  {65, 8, 17},   {20, 7, 16},
                                   {90, 45, 40}, {70, 129, 33}, {5, 0, 3}};

LinearGradArgs FirstRows(LinearGradArgs args, int64_t n) {
  for (Tensor* tensor : {&args.x, &args.y, &args.dy, &args.dx.tensor}) {
    if (!tensor->empty()) *tensor = tensor->FirstRows(n);
  }
  return args;
}

TEST_P(LinearConformance, PreparedLayersAreTheReferencesForAnyNumberOfSamples) {
  for (const auto& [n, in, out] : kShapes) {
    for (const Activation activation : kActivations) {
      LinearSpec spec = NewLinear(n, in, out, activation);
      if (in > 0 && in % 2 == 0) spec.bias = spec.args.db = Tensor();
      auto layer = backend_->PrepareLinear(spec);
      CHECK_OK(layer.status());
      int salt = 10;
      for (const int64_t samples : {n, n / 2, std::min<int64_t>(n, 1), int64_t{0}}) {
        LinearGradArgs args = FirstRows(spec.args, samples);
        args.dx.add = salt % 2 == 0;
        backend_->Copy(Random(samples, out, ++salt), args.dy, /*add=*/false);
        const LinearGradArgs want = Reference(args);
        backend_->LinearForward(layer->get(), args.x, args.w, spec.bias, args.y);
        reference_->Linear(want.x, want.w, Reference(spec.bias), activation, want.y);
        ExpectNear(args.y, want.y, 2e-5);
        backend_->LinearBackward(layer->get(), args);
        reference_->LinearGrad(want);
        ExpectNear(args.dx.tensor, want.dx.tensor, 5e-5);
        ExpectNear(args.dw, want.dw, 5e-5);
        if (!args.db.empty()) ExpectNear(args.db, want.db, 5e-5);
      }
    }
  }
}

TEST_P(LinearConformance, ALayerMayHaveNoInputGradientAndNoneAtAll) {
  for (const bool trained : {true, false}) {
    LinearSpec spec = NewLinear(40, 16, 24, Activation::kRelu);
    spec.args.dx = {};
    if (!trained) spec.args.dy = Tensor();
    auto layer = backend_->PrepareLinear(spec);
    CHECK_OK(layer.status());
    backend_->LinearForward(layer->get(), spec.args.x, spec.args.w, spec.bias, spec.args.y);
    const Tensor want = NewReference(40, 24);
    reference_->Linear(Reference(spec.args.x), Reference(spec.args.w), Reference(spec.bias),
                       Activation::kRelu, want);
    ExpectNear(spec.args.y, want, 2e-5);
    if (!trained) continue;
    const LinearGradArgs reference = Reference(spec.args);
    backend_->LinearBackward(layer->get(), spec.args);
    reference_->LinearGrad(reference);
    ExpectNear(spec.args.dw, reference.dw, 5e-5);
    ExpectNear(spec.args.db, reference.db, 5e-5);
  }
}

// The gradient may pass the ReLU of one layer in the product of the layer after it. With `add`,
// other readers of the same values have already left their gradients.
TEST_P(LinearConformance, TheLastReaderOfAReluMayTakeItsGradientAlong) {
  for (const auto& [in, hidden, out] : {std::tuple(24, 40, 16), {9, 130, 8}, {16, 32, 3}}) {
    constexpr int64_t kMost = 70;
    LinearSpec first = NewLinear(kMost, in, hidden, Activation::kRelu);
    LinearSpec second = NewLinear(kMost, hidden, out, Activation::kLinear);
    second.args.x = first.args.y;
    second.args.dx.tensor = first.args.dy;
    auto before = backend_->PrepareLinear(first);
    CHECK_OK(before.status());
    second.input_relu = before->get();
    auto behind = backend_->PrepareLinear(second);
    CHECK_OK(behind.status());
    for (const int64_t samples : {kMost, int64_t{33}, int64_t{0}}) {
      for (const bool add : {false, true}) {
        LinearGradArgs a = FirstRows(first.args, samples);
        LinearGradArgs b = FirstRows(second.args, samples);
        b.dx.add = add;
        backend_->Copy(Random(samples, out, 20), b.dy, /*add=*/false);
        backend_->Copy(Random(samples, hidden, 21), a.dy, /*add=*/false);
        LinearGradArgs want_a = Reference(a), want_b = Reference(b);
        want_b.x = want_a.y;
        want_b.dx.tensor = want_a.dy;
        backend_->LinearForward(before->get(), a.x, a.w, first.bias, a.y);
        backend_->LinearForward(behind->get(), b.x, b.w, second.bias, b.y);
        reference_->Linear(want_a.x, want_a.w, Reference(first.bias), a.activation, want_a.y);
        reference_->Linear(want_b.x, want_b.w, Reference(second.bias), b.activation, want_b.y);
        ExpectNear(b.y, want_b.y, 1e-4);
        backend_->LinearBackward(behind->get(), b);
        backend_->LinearBackward(before->get(), a);
        reference_->LinearGrad(want_b);
        reference_->LinearGrad(want_a);
        for (const auto& [got, want] : {std::pair(a, want_a), std::pair(b, want_b)}) {
          ExpectNear(got.dw, want.dw, 2e-4);
          ExpectNear(got.db, want.db, 2e-4);
        }
        ExpectNear(a.dx.tensor, want_a.dx.tensor, 2e-4);
      }
    }
  }
}

// As the test of this name in BackendConformance, for prepared layers.
TEST_P(LinearConformance, ARowDoesNotDependOnTheOthers) {
  constexpr int64_t kRows = 200;
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{129, 40}, {64, 32}, {40, 1}}) {
    const LinearSpec spec = NewLinear(kRows, in, out, Activation::kRelu);
    const Tensor x = Random(kRows, in, 1), all = New(kRows, out), parts = New(kRows, out);
    auto layer = backend_->PrepareLinear(spec);
    CHECK_OK(layer.status());
    const auto forward = [&](int64_t begin, int64_t rows, const Tensor& y) {
      backend_->Copy(x.Rows(begin, rows), spec.args.x.FirstRows(rows), /*add=*/false);
      backend_->LinearForward(layer->get(), spec.args.x.FirstRows(rows), spec.args.w, spec.bias,
                              spec.args.y.FirstRows(rows));
      backend_->Copy(spec.args.y.FirstRows(rows), y.Rows(begin, rows), /*add=*/false);
    };
    forward(0, kRows, all);
    for (const int64_t part : {7, 64, 128}) {
      for (int64_t begin = 0; begin < kRows; begin += part) {
        forward(begin, std::min(part, kRows - begin), parts);
      }
      const std::vector<float> a = Values(all), b = Values(parts);
      EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0)
          << in << " x " << out << " in parts of " << part;
    }
  }
}

// Otherwise a check for values that are not finite would miss them.
TEST_P(LinearConformance, ReluKeepsWhatIsNotANumber) {
  const LinearSpec spec = NewLinear(16, 8, 8, Activation::kRelu);
  auto layer = backend_->PrepareLinear(spec);
  CHECK_OK(layer.status());
  backend_->Fill(spec.args.x.Rows(3, 1), std::numeric_limits<float>::quiet_NaN());
  backend_->LinearForward(layer->get(), spec.args.x, spec.args.w, spec.bias, spec.args.y);
  const std::vector<float> y = Values(spec.args.y);
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(std::isnan(y[i * 8 + c]), i == 3) << i << " " << c;
  }
}

}  // namespace
}  // namespace satrap
