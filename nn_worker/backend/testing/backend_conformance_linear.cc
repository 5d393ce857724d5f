// The part of backend_conformance.h and half_conformance.h that tests linear layers, prepared or
// not.

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
#include "nn_worker/backend/testing/half_conformance.h"

namespace satrap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LinearConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HalfLinearConformance);

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

constexpr Activation kHalfPreparedActivations[] = {Activation::kLinear, Activation::kRelu,
                                                   Activation::kSigmoid};

struct LinearShape {
  int64_t n, in, out;
};
// Among the shapes are: zero rows; zero inputs, where the result is the bias; one output, as in the
// last layer of a tower; sizes just above those at which kernels divide rows and columns; and 429
// inputs, the width of a Criteo batch.
constexpr LinearShape kPlainShapes[] = {{0, 5, 4},   {1, 1, 1},     {7, 13, 1},     {64, 16, 8},
                                        {65, 3, 17}, {300, 45, 40}, {130, 429, 33}, {5, 0, 3}};
constexpr LinearShape kHalfPlainShapes[] = {{0, 5, 4},      {1, 1, 1},   {7, 13, 1},
                                            {150, 19, 1},   {65, 3, 17}, {300, 45, 40},
                                            {130, 429, 33}, {5, 0, 3}};
constexpr LinearShape kHalfPreparedShapes[] = {{0, 9, 8},    {7, 13, 1},    {65, 8, 17},
                                               {90, 45, 40}, {70, 129, 33}, {5, 0, 3}};
// Shapes around the smallest product for which a library is asked, and some of kPlainShapes.
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

// A backend may apply the ReLU of one layer to the gradient within the backward pass of the next
// layer. If `add` is set, other readers of the same values have added their gradients before.
TEST_P(LinearConformance, TheLastReaderOfAReluMayTakeItsGradientAlong) {
  for (const auto& [in, hidden, out] :
       {std::tuple(24, 40, 16), {9, 130, 8}, {16, 32, 3}, {16, 40, 1}}) {
    constexpr int64_t kMost = 70;
    LinearSpec first = NewLinear(kMost, in, hidden, Activation::kRelu);
    LinearSpec second = NewLinear(kMost, hidden, out, Activation::kLinear);
    second.args.x = first.args.y;
    second.args.dx.tensor = first.args.dy;
    auto before = backend_->PrepareLinear(first);
    CHECK_OK(before.status());
    second.input_relu = before->get();
    auto after = backend_->PrepareLinear(second);
    CHECK_OK(after.status());
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
        backend_->LinearForward(after->get(), b.x, b.w, second.bias, b.y);
        reference_->Linear(want_a.x, want_a.w, Reference(first.bias), a.activation, want_a.y);
        reference_->Linear(want_b.x, want_b.w, Reference(second.bias), b.activation, want_b.y);
        ExpectNear(b.y, want_b.y, 1e-4);
        backend_->LinearBackward(after->get(), b);
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

// Like the test of this name in BackendConformance, but for prepared layers.
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

// If ReLU dropped a NaN, a check for values that are not finite would miss it.
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

TEST_P(BackendConformance, LinearIsTheReferences) {
  for (const auto& [n, in, out] : kPlainShapes) {
    for (const Activation activation : kActivations) {
      const Tensor x = Random(n, in, 1, in + 3);
      const Tensor w = Random(in, out, 2);
      const Tensor bias = Random(1, out, 3);
      const Tensor y = New(n, out, out + 5);
      const Tensor want = NewReference(n, out);
      backend_->Linear(x, w, bias, activation, y);
      reference_->Linear(Reference(x), Reference(w), Reference(bias), activation, want);
      ExpectNear(y, want, 2e-5);
    }
  }
}

TEST_P(BackendConformance, LinearByHand) {
  const Tensor x = Of({{1, 2}, {-1, 0}});
  const Tensor w = Of({{1, 0, -1}, {2, 1, 0}});
  const Tensor bias = Of({{0, 1, 0}});
  const Tensor y = New(2, 3);
  backend_->Linear(x, w, bias, Activation::kRelu, y);
  EXPECT_EQ(Values(y), (std::vector<float>{5, 3, 0, 0, 1, 1}));
  backend_->Linear(x, w, Tensor(), Activation::kLinear, y);
  EXPECT_EQ(Values(y), (std::vector<float>{5, 2, -1, -1, 0, 1}));
}

TEST_P(BackendConformance, LinearGradIsTheReferences) {
  for (const auto& [n, in, out] : kPlainShapes) {
    for (const bool add : {false, true}) {
      for (const Activation activation : kActivations) {
        LinearGradArgs args;
        args.x = Random(n, in, 1, in + 3);
        args.w = Random(in, out, 2);
        args.activation = activation;
        args.y = New(n, out, out + 5);
        backend_->Linear(args.x, args.w, Tensor(), activation, args.y);
        args.dy = Random(n, out, 4, out + 1);
        // All outputs hold other values before the call. The call must overwrite dw and db, and
        // also dx unless it adds to dx.
        args.dx = {Random(n, in, 5, in + 2), add};
        args.dw = Random(in, out, 6);
        args.db = Random(1, out, 7);
        const LinearGradArgs want = Reference(args);
        backend_->LinearGrad(args);
        reference_->LinearGrad(want);
        ExpectNear(args.dx.tensor, want.dx.tensor, 5e-5);
        ExpectNear(args.dw, want.dw, 5e-5);
        ExpectNear(args.db, want.db, 5e-5);
      }
    }
  }
}

TEST_P(BackendConformance, LinearGradMayBeWithoutInputGradientAndBias) {
  LinearGradArgs args;
  args.x = Random(9, 6, 1);
  args.w = Random(6, 4, 2);
  args.y = New(9, 4);
  args.dy = Random(9, 4, 3);
  args.dw = New(6, 4);
  const LinearGradArgs want = Reference(args);
  backend_->LinearGrad(args);
  reference_->LinearGrad(want);
  ExpectNear(args.dw, want.dw, 1e-5);
}

// With another number of ranks, a rank has another number of rows, but its samples must get the
// same bits: predictions do not depend on how a batch was divided.
TEST_P(BackendConformance, ARowDoesNotDependOnTheOthers) {
  constexpr int64_t kRows = 1000;
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{429, 400}, {64, 32}, {40, 1}}) {
    const Tensor x = Random(kRows, in, 1);
    const Tensor w = Random(in, out, 2);
    const Tensor bias = Random(1, out, 3);
    const Tensor all = New(kRows, out);
    backend_->Linear(x, w, bias, Activation::kRelu, all);
    for (const int64_t part : {1, 7, 64, 128}) {
      const Tensor parts = New(kRows, out);
      // On the host's device each launch costs whole tiles of the product, even for few rows. So
      // small parts are only tried at every 31st row; 31 has no common divisor with the size of a
      // tile.
      const int64_t step = std::max<int64_t>(part, 31);
      for (int64_t begin = 0; begin < kRows; begin += step) {
        const int64_t rows = std::min(part, kRows - begin);
        backend_->Linear(x.Rows(begin, rows), w, bias, Activation::kRelu, parts.Rows(begin, rows));
      }
      const std::vector<float> a = Values(all), b = Values(parts);
      for (int64_t begin = 0; begin < kRows; begin += step) {
        const int64_t rows = std::min(part, kRows - begin);
        EXPECT_EQ(std::memcmp(&a[begin * out], &b[begin * out], rows * out * sizeof(float)), 0)
            << in << " x " << out << " in parts of " << part << ", from row " << begin;
      }
    }
  }
}

TEST_P(HalfConformance, LinearIsTheReferences) {
  for (const DType dtype : kHalves) {
    for (const auto& [n, in, out] : kHalfPlainShapes) {
      for (const Activation activation : kActivations) {
        const Twin x = RandomTwin(dtype, n, in, 1, in + 3);
        const Twin w = RandomTwin(dtype, in, out, 2, PaddedStride(dtype, out));
        const Tensor bias = Random(1, out, 3);
        // A single output is a logit, which is F32.
        const Twin y = TwinOf(New(n, out, out + 5, out == 1 ? DType::kF32 : dtype));
        backend_->Linear(x.half, w.half, bias, activation, y.half);
        reference_->Linear(x.want, w.want, Reference(bias), activation, y.want);
        ExpectTwins(y);
      }
    }
  }
}

TEST_P(HalfConformance, LinearGradRoundsTheGradientBeforeTheActivationAndSumsInF32) {
  for (const DType dtype : kHalves) {
    for (const auto& [n, in, out] : kHalfPlainShapes) {
      for (const bool add : {false, true}) {
        for (const Activation activation : kActivations) {
          const DType out_dtype = out == 1 ? DType::kF32 : dtype;
          LinearGradArgs args;
          const Twin x = RandomTwin(dtype, n, in, 1, in + 3);
          const Twin w = RandomTwin(dtype, in, out, 2, PaddedStride(dtype, out));
          const Tensor y = New(n, out, out + 5, out_dtype);
          backend_->Linear(x.half, w.half, Tensor(), activation, y);
          const Twin dy =
              out == 1 ? TwinOf(Random(n, out, 4, out + 1)) : RandomTwin(dtype, n, out, 4, out + 1);
          reference_->ActivateGrad(activation, TwinOf(y).want, dy.want, {dy.want, false});
          const Twin dx = RandomTwin(dtype, n, in, 5, in + 2);
          args = {x.half,       w.half,     activation, y, dy.half, dx.HalfTarget(add),
                  New(in, out), New(1, out)};
          backend_->LinearGrad(args);
          ExpectTwins(dy);
          // The reference continues with the backend's gradient, which is rounded.
          const Tensor dw = NewReference(in, out), db = NewReference(1, out);
          reference_->LinearGrad({x.want, w.want, Activation::kLinear, TwinOf(y).want,
                                  TwinOf(dy.half).want, dx.WantTarget(add), dw, db});
          ExpectTwins(dx);
          ExpectNear(args.dw, dw, 5e-5);
          ExpectNear(args.db, db, 5e-5);
        }
      }
    }
  }
}

// As for F32, predictions must not depend on how a batch was divided.
TEST_P(HalfConformance, ARowDoesNotDependOnTheOthers) {
  for (const DType dtype : kHalves) {
    const Twin x = RandomTwin(dtype, 200, 40, 1);
    const Twin w = RandomTwin(dtype, 40, 32, 2);
    const Tensor all = New(200, 32, 0, dtype), parts = New(200, 32, 0, dtype);
    backend_->Linear(x.half, w.half, Tensor(), Activation::kRelu, all);
    for (int64_t begin = 0; begin < 200; begin += 25) {
      backend_->Linear(x.half.Rows(begin, 25), w.half, Tensor(), Activation::kRelu,
                       parts.Rows(begin, 25));
    }
    EXPECT_EQ(HalfValues(all), HalfValues(parts));
  }
}

// Outputs of the network (a logit, or the scores of classes) are F32, so both dtypes are tested for
// y.
TEST_P(HalfLinearConformance, PreparedLayersAreTheReferences) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const auto& [n, in, out] : kHalfPreparedShapes) {
      for (const DType out_dtype : {dtype, DType::kF32}) {
        for (const Activation activation : kHalfPreparedActivations) {
          for (const bool add : {false, true}) {
            const Twin x = RandomTwin(dtype, n, in, 1, in + 3);
            const Twin w = RandomTwin(dtype, in, out, 2, PaddedStride(dtype, out));
            const Twin dy = out_dtype == DType::kF32 ? TwinOf(Random(n, out, 4, out + 1))
                                                     : RandomTwin(dtype, n, out, 4, out + 1);
            const Twin dx = RandomTwin(dtype, n, in, 5, in + 2);
            LinearSpec spec;
            const bool rounded = backend_->takes_rounded_biases() && out_dtype == dtype;
            const Twin bias = rounded ? RandomTwin(dtype, 1, out, 3) : TwinOf(Random(1, out, 3));
            spec.bias = bias.half;
            spec.args = {x.half,       w.half,
                         activation,   New(n, out, out + 5, out_dtype),
                         dy.half,      dx.HalfTarget(add),
                         New(in, out), New(1, out)};
            auto layer = backend_->PrepareLinear(spec);
            CHECK_OK(layer.status());
            backend_->LinearForward(layer->get(), x.half, w.half, spec.bias, spec.args.y);
            const Tensor want = NewReference(n, out);
            reference_->Linear(x.want, w.want, bias.want, activation, want);
            ExpectTwins({spec.args.y, want});
            // From here on the reference uses the backend's rounded values, too.
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
  constexpr int64_t kSamples = 50, kIn = 24, kHidden = 40;
  for (const auto& [dtype, out] :
       {std::pair(DType::kF16, 16), {DType::kBF16, 16}, {DType::kF16, 1}, {DType::kBF16, 1}}) {
    const Twin x = RandomTwin(dtype, kSamples, kIn, 1), w1 = RandomTwin(dtype, kIn, kHidden, 2);
    const Twin w2 = RandomTwin(dtype, kHidden, out, 3), dy = RandomTwin(dtype, kSamples, out, 4);
    const Tensor hidden = New(kSamples, kHidden, 0, dtype), y = New(kSamples, out, 0, dtype);
    const Tensor dhidden = New(kSamples, kHidden, 0, dtype);
    LinearSpec first, second;
    first.bias = Random(1, kHidden, 5);
    first.args = {x.half,  w1.half, Activation::kRelu, hidden,
                  dhidden, {},      New(kIn, kHidden), New(1, kHidden)};
    second.args = {hidden,  w2.half,          Activation::kLinear, y,
                   dy.half, {dhidden, false}, New(kHidden, out),   Tensor()};
    auto before = backend_->PrepareLinear(first);
    CHECK_OK(before.status());
    second.input_relu = before->get();
    auto after = backend_->PrepareLinear(second);
    CHECK_OK(after.status());
    backend_->LinearForward(before->get(), x.half, w1.half, first.bias, hidden);
    backend_->LinearForward(after->get(), hidden, w2.half, Tensor(), y);
    backend_->LinearBackward(after->get(), second.args);
    backend_->LinearBackward(before->get(), first.args);
    // The reference uses the backend's activations and rounded gradient, so that only sums differ.
    const Tensor z = NewReference(kSamples, kHidden), dz = NewReference(kSamples, kHidden);
    const Tensor dw1 = NewReference(kIn, kHidden), dw2 = NewReference(kHidden, out);
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
