#include "nn_worker/backend/testing/half_conformance.h"

#include <array>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/tensor_testing.h"

namespace satrap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HalfConformance);

namespace {

constexpr DType kHalves[] = {DType::kF16, DType::kBF16};
constexpr Activation kActivations[] = {Activation::kLinear, Activation::kRelu, Activation::kSigmoid,
                                       Activation::kTanh};

std::vector<uint16_t> BitsOf(DType dtype, const std::vector<float>& values) {
  std::vector<uint16_t> bits(values.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    bits[i] = dtype == DType::kF16 ? F16FromF32(values[i]) : Bf16FromF32(values[i]);
  }
  return bits;
}

// Half the distance between neighbouring values of `dtype`, relative to the values.
double HalfUnit(DType dtype) { return dtype == DType::kF16 ? 0x1p-11 : 0x1p-8; }

}  // namespace

std::vector<float> HalfConformance::HalfValues(Tensor x) {
  if (x.dtype == DType::kF32) return Values(x);
  std::vector<uint16_t> bits(x.size());
  CopyOut(backend_.get(), x, absl::MakeSpan(bits));
  backend_->Sync();
  std::vector<float> values;
  for (const uint16_t value : bits) {
    values.push_back(x.dtype == DType::kF16 ? F32FromF16(value) : F32FromBf16(value));
  }
  return values;
}

HalfConformance::Twin HalfConformance::TwinOf(Tensor half) {
  const Tensor want = NewReference(half.rows, half.cols);
  CopyIn(reference_.get(), HalfValues(half), want);
  return {half, want};
}

HalfConformance::Twin HalfConformance::RandomTwin(DType dtype, int64_t rows, int64_t cols, int salt,
                                                  int64_t stride) {
  const Tensor half = New(rows, cols, stride, dtype);
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      values.push_back(static_cast<float>(2 * UniformDouble(RandomBits(salt, i, c)) - 1));
    }
  }
  CopyIn(backend_.get(), BitsOf(dtype, values), half);
  return TwinOf(half);
}

void HalfConformance::ExpectTwins(const Twin& twin) {
  const std::vector<float> got = HalfValues(twin.half);
  const std::vector<float> want = ReadFloats(reference_.get(), twin.want);
  const double relative = twin.half.dtype == DType::kF32 ? 0 : HalfUnit(twin.half.dtype);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], relative * std::abs(want[i]) + 1e-4)
        << "value " << i << " of (" << twin.half.rows << ", " << twin.half.cols << ")";
  }
}

std::vector<Tensor> HalfConformance::Halves(const std::vector<Twin>& twins) {
  std::vector<Tensor> tensors;
  for (const Twin& twin : twins) tensors.push_back(twin.half);
  return tensors;
}
std::vector<Tensor> HalfConformance::Wants(const std::vector<Twin>& twins) {
  std::vector<Tensor> tensors;
  for (const Twin& twin : twins) tensors.push_back(twin.want);
  return tensors;
}

namespace {

struct LinearShape {
  int64_t n, in, out;
};
constexpr LinearShape kLinearShapes[] = {{0, 5, 4},   {1, 1, 1},     {7, 13, 1},     {150, 19, 1},
                                         {65, 3, 17}, {300, 45, 40}, {130, 429, 33}, {5, 0, 3}};

TEST_P(HalfConformance, LinearIsTheReferences) {
  for (const DType dtype : kHalves) {
    for (const auto& [n, in, out] : kLinearShapes) {
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
    for (const auto& [n, in, out] : kLinearShapes) {
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
          // The reference continues with the rounded gradient.
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

// As in F32: predictions do not depend on how a batch was divided.
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

TEST_P(HalfConformance, CopiesConvertBetweenDtypesAndAdd) {
  for (const DType from : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType to : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const bool add : {false, true}) {
        const Twin x =
            from == DType::kF32 ? TwinOf(Random(70, 9, 1)) : RandomTwin(from, 70, 9, 1, 32);
        const Twin y = to == DType::kF32 ? TwinOf(Random(70, 9, 2)) : RandomTwin(to, 70, 9, 2, 33);
        backend_->Copy(x.half, y.half, add);
        reference_->Copy(x.want, y.want, add);
        ExpectTwins(y);
      }
    }
  }
}

TEST_P(HalfConformance, CopiesRoundToNearestAndKeepWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor x = Of({{0x1.002p0f, 0x1.006p0f, 1e6f, -kInf, 0x1p-25f}});
  const Tensor f16 = New(1, 5, 0, DType::kF16);
  backend_->Copy(x, f16, /*add=*/false);
  // Ties go to even; what an F16 cannot hold becomes infinite, or 0.
  EXPECT_EQ(HalfValues(f16), (std::vector<float>{1, 0x1.008p0f, kInf, -kInf, 0}));
  const Tensor bf16 = New(1, 5, 0, DType::kBF16);
  backend_->Copy(x, bf16, /*add=*/false);
  EXPECT_EQ(HalfValues(bf16), (std::vector<float>{1, 1, 999424, -kInf, 0x1p-25f}));
}

// A step whose gradients overflowed in F16 is found by this count.
TEST_P(HalfConformance, NonFiniteValuesAreCounted) {
  for (const DType dtype : kHalves) {
    const Tensor x = New(40, 7, 9, dtype);
    std::vector<float> values(280, 1);
    values[3] = std::numeric_limits<float>::infinity();
    values[200] = std::numeric_limits<float>::quiet_NaN();
    CopyIn(backend_.get(), BitsOf(dtype, values), x);
    const Tensor count = New(1, 1, 0, DType::kF64);
    backend_->CountBeyond(x, std::numeric_limits<float>::max(), count);
    EXPECT_EQ(Doubles(count)[0], 2);
  }
}

TEST_P(HalfConformance, FillsAndBiasesAreTheReferences) {
  for (const DType dtype : kHalves) {
    const Twin x = RandomTwin(dtype, 130, 19, 1, 21), y = RandomTwin(dtype, 130, 19, 2, 32);
    const Tensor bias = Random(1, 19, 3);
    backend_->AddBias(x.half, bias, y.half);
    reference_->AddBias(x.want, Reference(bias), y.want);
    ExpectTwins(y);
    const Tensor sums = New(1, 19), want = NewReference(1, 19);
    backend_->ColumnSum(x.half, sums);
    reference_->ColumnSum(x.want, want);
    ExpectNear(sums, want, 1e-4);
    backend_->Fill(y.half, 0.5f);
    EXPECT_EQ(HalfValues(y.half), std::vector<float>(130 * 19, 0.5f));
  }
}

TEST_P(HalfConformance, ActivationsAreTheReferences) {
  for (const DType dtype : kHalves) {
    for (const Activation activation : kActivations) {
      for (const bool add : {false, true}) {
        const Twin x = RandomTwin(dtype, 133, 19, 1, 32), dy = RandomTwin(dtype, 133, 19, 2);
        const Twin y = TwinOf(New(133, 19, 24, dtype)), dx = RandomTwin(dtype, 133, 19, 3);
        backend_->Activate(activation, x.half, y.half);
        reference_->Activate(activation, x.want, y.want);
        ExpectTwins(y);
        const Twin rounded = TwinOf(y.half);
        backend_->ActivateGrad(activation, rounded.half, dy.half, dx.HalfTarget(add));
        reference_->ActivateGrad(activation, rounded.want, dy.want, dx.WantTarget(add));
        ExpectTwins(dx);
      }
    }
  }
}

TEST_P(HalfConformance, SumsOverFeaturesAreTheReferences) {
  for (const DType dtype : kHalves) {
    // The first three lie side by side, as in a concatenation.
    const Twin block = RandomTwin(dtype, 130, 12, 1, 40);
    std::vector<Twin> xs;
    for (int f = 0; f < 3; ++f) {
      xs.push_back({block.half.Columns(4 * f, 4), block.want.Columns(4 * f, 4)});
    }
    xs.push_back(RandomTwin(dtype, 130, 4, 2, 6));
    xs.push_back(TwinOf(Random(130, 4, 3)));
    const Tensor s = New(130, 4), y = New(130, 1, 16);
    const Tensor want_s = NewReference(130, 4), want_y = NewReference(130, 1);
    backend_->Fm(Halves(xs), s, y);
    reference_->Fm(Wants(xs), want_s, want_y);
    ExpectNear(s, want_s, 1e-5);
    ExpectNear(y, want_y, 1e-4);
    const Twin dy = TwinOf(Random(130, 1, 4));
    std::vector<Twin> dxs;
    std::vector<GradientTarget> targets, want_targets;
    for (int f = 0; f < 5; ++f) {
      dxs.push_back(RandomTwin(dtype, 130, 4, 10 + f, 5));
      targets.push_back(f == 1 ? GradientTarget() : dxs[f].HalfTarget(f % 2 == 0));
      want_targets.push_back(f == 1 ? GradientTarget() : dxs[f].WantTarget(f % 2 == 0));
    }
    backend_->FmGrad(Halves(xs), s, dy.half, targets);
    reference_->FmGrad(Wants(xs), want_s, dy.want, want_targets);
    for (const Twin& dx : dxs) ExpectTwins(dx);
    backend_->RowSum(Halves(xs), y);
    reference_->RowSum(Wants(xs), want_y);
    ExpectNear(y, want_y, 1e-5);
    backend_->RowSumGrad(dy.half, targets);
    reference_->RowSumGrad(dy.want, want_targets);
    ExpectTwins(dxs[3]);  // the one that is assigned; the others were rounded a second time
  }
}

TEST_P(HalfConformance, SequencesAreTheReferences) {
  for (const DType dtype : kHalves) {
    for (const auto pooling :
         {SequencePooling::kMean, SequencePooling::kSum, SequencePooling::kMax}) {
      const Tensor lengths = Of({{0}, {1}, {3}, {2}, {3}});
      const Twin x = RandomTwin(dtype, 5, 12, 1, 15), y = TwinOf(New(5, 4, 6, dtype));
      backend_->SequencePool(pooling, x.half, lengths, y.half);
      reference_->SequencePool(pooling, x.want, Reference(lengths), y.want);
      ExpectTwins(y);
      const Twin rounded = TwinOf(y.half), dy = RandomTwin(dtype, 5, 4, 2);
      const Twin dx = RandomTwin(dtype, 5, 12, 3);
      backend_->SequencePoolGrad(pooling, x.half, lengths, rounded.half, dy.half,
                                 dx.HalfTarget(true));
      reference_->SequencePoolGrad(pooling, x.want, Reference(lengths), rounded.want, dy.want,
                                   dx.WantTarget(true));
      ExpectTwins(dx);
    }
  }
}

// The mask follows from the seed, the step, the sample and the column, whatever the dtype.
TEST_P(HalfConformance, DropoutDropsTheSameValues) {
  for (const DType dtype : kHalves) {
    for (const bool add : {false, true}) {
      const Twin x = RandomTwin(dtype, 130, 40, 1, 43), y = RandomTwin(dtype, 130, 40, 2);
      const DropoutMask mask = NewDropoutMask(backend_.get(), 77, {2, 1000});
      backend_->Dropout(x.half, mask, 0.3f, y.half, add);
      reference_->Dropout(x.want, mask, 0.3f, y.want, add);
      ExpectTwins(y);
    }
  }
}

TEST_P(HalfConformance, BatchNormKeepsItsStatisticsInF32) {
  for (const DType dtype : kHalves) {
    constexpr int64_t kRows = 300, kCols = 17;
    const Twin x = RandomTwin(dtype, kRows, kCols, 1, 20), dy = RandomTwin(dtype, kRows, kCols, 2);
    const Twin y = TwinOf(New(kRows, kCols, 0, dtype)), dx = RandomTwin(dtype, kRows, kCols, 3);
    const Tensor gamma = Random(1, kCols, 4), beta = Random(1, kCols, 5);
    const Tensor sums = New(1, 2 * kCols + 1, 0, DType::kF64);
    const Tensor want_sums = NewReference(1, 2 * kCols + 1, DType::kF64);
    const Tensor stats = New(2, kCols), want_stats = NewReference(2, kCols);
    backend_->Moments(x.half, sums);
    reference_->Moments(x.want, want_sums);
    backend_->BatchNorm(x.half, sums, 1e-5f, gamma, beta, stats, y.half);
    reference_->BatchNorm(x.want, want_sums, 1e-5f, Reference(gamma), Reference(beta), want_stats,
                          y.want);
    ExpectNear(stats, want_stats, 1e-5);
    ExpectTwins(y);
    const Tensor grad_sums = New(1, 2 * kCols, 0, DType::kF64);
    const Tensor want_grad_sums = NewReference(1, 2 * kCols, DType::kF64);
    backend_->BatchNormGradSums(x.half, stats, dy.half, grad_sums);
    reference_->BatchNormGradSums(x.want, want_stats, dy.want, want_grad_sums);
    backend_->BatchNormGrad(x.half, stats, gamma, dy.half, sums, grad_sums, dx.HalfTarget(true));
    reference_->BatchNormGrad(x.want, want_stats, Reference(gamma), dy.want, want_sums,
                              want_grad_sums, dx.WantTarget(true));
    ExpectTwins(dx);
    const Tensor mean = Random(1, kCols, 6), variance = New(1, kCols);
    backend_->Fill(variance, 2);
    backend_->BatchNormFixed(x.half, mean, variance, 1e-5f, gamma, beta, y.half);
    reference_->BatchNormFixed(x.want, Reference(mean), Reference(variance), 1e-5f,
                               Reference(gamma), Reference(beta), y.want);
    ExpectTwins(y);
  }
}

TEST_P(HalfConformance, RowsAreExchangedInSixteenBits) {
  const HostIds one = {{0, 3, 3, 1}, {}, {}};
  const HostIds bag = {{2, 2, 0, 1, 3}, {0, 2, 2, 4, 5}, {.5f, 1, 2, 1, 1}};
  for (const DType dtype : kHalves) {
    const Tensor rows = Random(4, 5, 1);
    std::vector<FeatureExchange> halves, wants;
    std::vector<Twin> values;
    const auto add = [&](RowPooling pooling, const HostIds& ids, int64_t width) {
      FeatureExchange feature = Feature(pooling, 4, ids, rows);
      feature.max_length = 2;
      FeatureExchange want = Reference(feature);
      values.push_back(TwinOf(New(4, width * (pooling == RowPooling::kNone ? 2 : 1), 40, dtype)));
      feature.segments = {{1, width, values.back().half}};
      want.segments = {{1, width, values.back().want}};
      halves.push_back(std::move(feature));
      wants.push_back(std::move(want));
    };
    add(RowPooling::kSum, one, 4);
    add(RowPooling::kMean, bag, 3);
    add(RowPooling::kNone, bag, 2);
    backend_->GatherRows(halves);
    reference_->GatherRows(wants);
    for (const Twin& value : values) ExpectTwins(value);
    // The gradients are what the gather wrote, rounded.
    for (size_t f = 0; f < values.size(); ++f) {
      wants[f].segments[0].values = TwinOf(values[f].half).want;
    }
    const Tensor gradients = New(4, 5), want = NewReference(4, 5);
    const RowInverse inverse = Inverse({one, bag, bag}, 4);
    backend_->ScatterGradients(halves, inverse, gradients);
    reference_->ScatterGradients(wants, {Reference(inverse.starts), Reference(inverse.positions)},
                                 want);
    ExpectNear(gradients, want, 1e-5);
  }
}

// Rows longer than a group of values, rows shorter than one, a row as long as a group, a row of one
// value, and values after the last copy, which have no copy.
TEST_P(HalfConformance, AnOptimizerStepRoundsWeightsIntoTheirCopies) {
  const int64_t n = 211;
  for (const DType dtype : kHalves) {
    const Tensor gradient = Random(1, n, 1), w = Random(1, n, 2);
    std::vector<WeightCopy> copies;
    for (const auto& [begin, rows, cols] :
         {std::array<int64_t, 3>{0, 3, 7}, {32, 5, 8}, {80, 9, 2}, {112, 1, 1}, {128, 4, 19}}) {
      const Tensor padded = New(rows, cols, PaddedStride(dtype, cols), dtype);
      copies.push_back({begin, padded});
      backend_->Copy(w.Columns(begin, rows * cols).Reshaped(rows, cols), padded, /*add=*/false);
    }
    for (const bool applies : {true, false}) {
      const Tensor control =
          applies ? ControlThatApplies(backend_.get()) : AllocateControl(backend_.get()).value();
      backend_->OptimizerStep(control, OptimizerRule(), gradient, w, {}, copies);
      const std::vector<float> values = Values(w);
      for (const WeightCopy& copy : copies) {
        const auto first = values.begin() + copy.begin;
        const Twin want = TwinOf(New(1, copy.values.size(), 0, dtype));
        CopyIn(backend_.get(), BitsOf(dtype, {first, first + copy.values.size()}), want.half);
        EXPECT_EQ(HalfValues(copy.values), HalfValues(want.half)) << copy.begin;
      }
    }
  }
}

}  // namespace
}  // namespace satrap
