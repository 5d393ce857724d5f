#include "nn_worker/backend/testing/backend_conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/half_conformance.h"
#include "nn_worker/backend/testing/reference_backend.h"
#include "nn_worker/backend/testing/tensor_testing.h"

namespace satrap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendConformance);

BackendConformance::BackendConformance()
    : made_(GetParam()()),
      backend_(made_.ok() ? *std::move(made_) : nullptr),
      reference_(NewReferenceBackend()) {}

Tensor BackendConformance::Random(int64_t rows, int64_t cols, int salt, int64_t stride) {
  const Tensor x = New(rows, cols, stride);
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      values.push_back(static_cast<float>(2 * UniformDouble(RandomBits(salt, i, c)) - 1));
    }
  }
  CopyIn(backend_.get(), values, x);
  return x;
}

Tensor BackendConformance::Of(const std::vector<std::vector<float>>& rows) {
  const Tensor x = New(rows.size(), rows[0].size());
  for (size_t i = 0; i < rows.size(); ++i) CopyIn(backend_.get(), rows[i], x.Rows(i, 1));
  return x;
}

std::vector<float> BackendConformance::Values(Tensor x) { return ReadFloats(backend_.get(), x); }
std::vector<double> BackendConformance::Doubles(Tensor x) { return ReadDoubles(backend_.get(), x); }

Tensor BackendConformance::NewReference(int64_t rows, int64_t cols, DType dtype) {
  const auto tensor = AllocateTensor(reference_.get(), dtype, rows, cols);
  CHECK_OK(tensor.status());
  return *tensor;
}

Tensor BackendConformance::Reference(Tensor x) {
  if (x.empty()) return x;
  const Tensor copy = NewReference(x.rows, x.cols, x.dtype);
  std::vector<uint8_t> bytes(x.size_bytes());
  backend_->CopyOut(x, absl::MakeSpan(bytes));
  backend_->Sync();
  reference_->CopyIn(bytes, copy);
  return copy;
}

LinearGradArgs BackendConformance::Reference(const LinearGradArgs& args) {
  return {Reference(args.x),  Reference(args.w),  args.activation,
          Reference(args.y),  Reference(args.dy), {Reference(args.dx.tensor), args.dx.add},
          Reference(args.dw), Reference(args.db)};
}

std::vector<Tensor> BackendConformance::References(const std::vector<Tensor>& xs) {
  std::vector<Tensor> copies;
  for (const Tensor& x : xs) copies.push_back(Reference(x));
  return copies;
}

void BackendConformance::ExpectNear(Tensor got, Tensor want, double tolerance) {
  const std::vector<float> a = Values(got);
  const std::vector<float> b = ReadFloats(reference_.get(), want);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance)
        << "value " << i << " of (" << got.rows << ", " << got.cols << ")";
  }
}

namespace {

constexpr Activation kActivations[] = {Activation::kLinear, Activation::kRelu, Activation::kSigmoid,
                                       Activation::kTanh};

TEST_P(BackendConformance, ActivationsAreTheReferences) {
  for (const Activation activation : kActivations) {
    for (const bool add : {false, true}) {
      const Tensor x = Random(133, 19, 1, 32);
      const Tensor y = New(133, 19, 24);
      const Tensor want = NewReference(133, 19);
      backend_->Activate(activation, x, y);
      reference_->Activate(activation, Reference(x), want);
      ExpectNear(y, want, 1e-6);
      // Both gradients are computed from the same y. Otherwise the difference between the forward
      // results would count twice.
      const Tensor dy = Random(133, 19, 2);
      const GradientTarget dx = {Random(133, 19, 3), add};
      const GradientTarget want_dx = {Reference(dx.tensor), add};
      backend_->ActivateGrad(activation, y, dy, dx);
      reference_->ActivateGrad(activation, Reference(y), Reference(dy), want_dx);
      ExpectNear(dx.tensor, want_dx.tensor, 1e-6);
    }
  }
}

TEST_P(BackendConformance, NanReachesTheOutput) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation activation : kActivations) {
    const Tensor x = Of({{nan, 1}});
    const Tensor y = New(1, 2);
    backend_->Activate(activation, x, y);
    EXPECT_TRUE(std::isnan(Values(y)[0]));
    EXPECT_FALSE(std::isnan(Values(y)[1]));
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

TEST_P(BackendConformance, BiasAndColumnSum) {
  const Tensor x = Of({{1, 2}, {3, 4}, {5, 6}});
  const Tensor y = New(3, 2);
  backend_->AddBias(x, Of({{10, 20}}), y);
  EXPECT_EQ(Values(y), (std::vector<float>{11, 22, 13, 24, 15, 26}));
  const Tensor sums = Of({{7, 7}});
  backend_->ColumnSum(x, sums);
  EXPECT_EQ(Values(sums), (std::vector<float>{9, 12}));
  backend_->ColumnSum(New(0, 2), sums);
  EXPECT_EQ(Values(sums), (std::vector<float>{0, 0}));
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

TEST_P(BackendConformance, RowSumOfManyInputs) {
  const Tensor block = Random(150, 10, 1, 16);
  // A backend may join neighbouring columns of the same rows into one loop, as the CPU backend
  // does. Some of these inputs can be joined, one follows a gap, and one is in other memory.
  const std::vector<Tensor> xs = {block.Columns(0, 1), block.Columns(1, 1), block.Columns(4, 3),
                                  Random(150, 2, 2)};
  const Tensor y = New(150, 1), want = NewReference(150, 1);
  backend_->RowSum(xs, y);
  reference_->RowSum(References(xs), want);
  ExpectNear(y, want, 1e-6);
  const Tensor dx = Random(150, 10, 3, 16);
  const Tensor want_dx = Reference(dx);
  const Tensor dy = Random(150, 1, 4);
  backend_->RowSumGrad(
      dy, {{dx.Columns(0, 1), false}, {dx.Columns(1, 1), false}, {dx.Columns(2, 2), true}, {}});
  reference_->RowSumGrad(Reference(dy),
                         {{want_dx.Columns(0, 2), false}, {want_dx.Columns(2, 2), true}});
  ExpectNear(dx, want_dx, 1e-6);
}

TEST_P(BackendConformance, FmByHand) {
  const std::vector<Tensor> xs = {Of({{1, 2}}), Of({{3, -1}}), Of({{0, 4}})};
  const Tensor s = New(1, 2), y = New(1, 1);
  backend_->Fm(xs, s, y);
  // The dot products of all pairs: (1*3 - 2*1) + (0 + 8) + (0 - 4).
  EXPECT_EQ(Values(y), (std::vector<float>{5}));
  EXPECT_EQ(Values(s), (std::vector<float>{4, 5}));
  // dx_f = dy (s - x_f), so the first gradient is 2 ((4, 5) - (1, 2)), and 2 ((4, 5) - (0, 4)) is
  // added to 100. The gradient of the input between them is not wanted.
  const Tensor dx = Of({{100, 100}}), added = Of({{100, 100}});
  backend_->FmGrad(xs, s, Of({{2}}), {{dx, false}, {}, {added, true}});
  EXPECT_EQ(Values(dx), (std::vector<float>{6, 6}));
  EXPECT_EQ(Values(added), (std::vector<float>{108, 102}));
}

TEST_P(BackendConformance, FmIsTheReferences) {
  for (const int64_t dim : {1, 10, 16, 37}) {
    const std::vector<Tensor> xs = {Random(260, dim, 1, dim + 7), Random(260, dim, 2),
                                    Random(260, dim, 3)};
    const Tensor s = New(260, dim), y = New(260, 1);
    const Tensor want_s = NewReference(260, dim), want = NewReference(260, 1);
    backend_->Fm(xs, s, y);
    reference_->Fm(References(xs), want_s, want);
    ExpectNear(y, want, 1e-5);
    ExpectNear(s, want_s, 1e-6);
  }
}

TEST_P(HalfConformance, SumsOverFeaturesAreTheReferences) {
  for (const DType dtype : kHalves) {
    // The first three tensors are side by side, as in a concatenation.
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

TEST_P(BackendConformance, SequencePoolByHand) {
  // Two positions of two columns. Values after the length must not be read.
  const Tensor x = Of({{1, 5, 3, 2}, {1, 2, 99, 99}, {99, 99, 99, 99}, {4, 4, 4, 1}});
  // The last length is longer than a row and counts as 2.
  const Tensor lengths = Of({{2}, {1}, {0}, {7}});
  struct Case {
    SequencePooling pooling;
    std::vector<float> y, dx;
  };
  const std::vector<Case> cases = {
      {SequencePooling::kSum,
       {4, 7, 1, 2, 0, 0, 8, 5},
       {2, 4, 2, 4, 2, 4, 0, 0, 0, 0, 0, 0, 2, 4, 2, 4}},
      {SequencePooling::kMean,
       {2, 3.5, 1, 2, 0, 0, 4, 2.5},
       {1, 2, 1, 2, 2, 4, 0, 0, 0, 0, 0, 0, 1, 2, 1, 2}},
      // If several positions attain the maximum, the first gets the gradient.
      {SequencePooling::kMax,
       {3, 5, 1, 2, 0, 0, 4, 4},
       {0, 4, 2, 0, 2, 4, 0, 0, 0, 0, 0, 0, 2, 4, 0, 0}},
  };
  for (const Case& c : cases) {
    const Tensor y = New(4, 2), dx = New(4, 4);
    backend_->Fill(dx, 50);
    backend_->SequencePool(c.pooling, x, lengths, y);
    EXPECT_EQ(Values(y), c.y);
    backend_->SequencePoolGrad(c.pooling, x, lengths, y, Of({{2, 4}, {2, 4}, {2, 4}, {2, 4}}),
                               {dx, false});
    EXPECT_EQ(Values(dx), c.dx);
  }
}

TEST_P(BackendConformance, SequencePoolIsTheReferences) {
  const int64_t n = 261, length = 9, d = 37;
  const Tensor x = Random(n, length * d, 1, length * d + 5), lengths = New(n, 1, 3);
  std::vector<float> counts;
  for (int64_t i = 0; i < n; ++i) counts.push_back(static_cast<float>(i % (length + 1)));
  CopyIn(backend_.get(), counts, lengths);
  const Tensor want_x = Reference(x), want_lengths = Reference(lengths);
  for (const auto pooling :
       {SequencePooling::kMean, SequencePooling::kSum, SequencePooling::kMax}) {
    for (const bool add : {false, true}) {
      const Tensor y = New(n, d, d + 3), want = NewReference(n, d), dy = Random(n, d, 2);
      backend_->SequencePool(pooling, x, lengths, y);
      reference_->SequencePool(pooling, want_x, want_lengths, want);
      ExpectNear(y, want, 1e-6);
      const GradientTarget dx = {Random(n, length * d, 3, length * d + 1), add};
      const GradientTarget want_dx = {Reference(dx.tensor), add};
      reference_->SequencePoolGrad(pooling, want_x, want_lengths, Reference(y), Reference(dy),
                                   want_dx);
      backend_->SequencePoolGrad(pooling, x, lengths, y, dy, dx);
      ExpectNear(dx.tensor, want_dx.tensor, 1e-6);
    }
  }
}

// Every comparison with NaN is false, so a plain maximum would drop a NaN, and the step would count
// as finite.
TEST_P(BackendConformance, ABrokenValueReachesTheMaximum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Of({{1, nan, 2}, {nan, 1, 2}, {1, 2, nan}}), y = New(3, 1);
  backend_->SequencePool(SequencePooling::kMax, x, Of({{3}, {3}, {3}}), y);
  for (const float value : Values(y)) EXPECT_TRUE(std::isnan(value));
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

TEST_P(BackendConformance, DropoutIsAFunctionOfTheSample) {
  const Tensor x = Random(257, 30, 1);
  const Tensor y = New(257, 30), want = NewReference(257, 30), tail = New(57, 30);
  const DropoutMask mask = NewDropoutMask(backend_.get(), 99, {3, 1000});
  backend_->Dropout(x, mask, 0.3f, y, /*add=*/false);
  reference_->Dropout(Reference(x), mask, 0.3f, want, /*add=*/false);
  ExpectNear(y, want, 0);
  // Another rank may have the samples from 1200 on as its part. They must get the same mask there
  // as in the whole batch.
  backend_->Dropout(x.Rows(200, 57), NewDropoutMask(backend_.get(), 99, {3, 1200}), 0.3f, tail,
                    /*add=*/false);
  EXPECT_EQ(Values(tail), Values(y.Rows(200, 57)));
}

TEST_P(BackendConformance, DropoutKeepsTheShareAndTheMean) {
  const Tensor x = New(2000, 50);
  backend_->Fill(x, 1);
  const Tensor y = New(2000, 50);
  backend_->Dropout(x, NewDropoutMask(backend_.get(), 7, {}), 0.25f, y, /*add=*/false);
  double sum = 0;
  int64_t zeros = 0;
  for (const float value : Values(y)) {
    sum += value;
    zeros += value == 0;
  }
  EXPECT_NEAR(zeros / 1e5, 0.25, 0.006);  // four standard deviations
  EXPECT_NEAR(sum / 1e5, 1.0, 0.008);
}

// The mask depends on the seed, the step, the sample and the column, but not on the dtype.
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

TEST_P(BackendConformance, BatchNormIsTheReferences) {
  const int64_t n = 301, cols = 23;
  struct Run {
    // Each backend continues with its own results, as in a layer.
    Tensor x, dy, gamma, beta, sums, stats, y, grad_sums, dx, mean, variance, fixed;
  };
  const auto run = [&](Backend* backend, const Run& r) {
    backend->Fill(r.variance, 1);
    backend->Moments(r.x, r.sums);
    backend->BatchNorm(r.x, r.sums, 1e-5f, r.gamma, r.beta, r.stats, r.y);
    backend->BatchNormGradSums(r.x, r.stats, r.dy, r.grad_sums);
    backend->BatchNormGrad(r.x, r.stats, r.gamma, r.dy, r.sums, r.grad_sums, {r.dx, true});
    backend->BatchNormRunning(ControlThatApplies(backend), r.sums, 0.9f, r.mean, r.variance);
    backend->BatchNormFixed(r.x, r.mean, r.variance, 1e-5f, r.gamma, r.beta, r.fixed);
  };
  const Run got{Random(n, cols, 1, 32),
                Random(n, cols, 2),
                Random(1, cols, 3),
                Random(1, cols, 4),
                New(1, 2 * cols + 1, 0, DType::kF64),
                New(2, cols),
                New(n, cols),
                New(1, 2 * cols, 0, DType::kF64),
                Random(n, cols, 5),
                Random(1, cols, 6),
                New(1, cols),
                New(n, cols)};
  const Run want{Reference(got.x),    Reference(got.dy),        Reference(got.gamma),
                 Reference(got.beta), Reference(got.sums),      Reference(got.stats),
                 Reference(got.y),    Reference(got.grad_sums), Reference(got.dx),
                 Reference(got.mean), Reference(got.variance),  Reference(got.fixed)};
  run(backend_.get(), got);
  run(reference_.get(), want);
  const std::vector<double> sums = Doubles(got.sums), grad_sums = Doubles(got.grad_sums);
  const std::vector<double> want_sums = ReadDoubles(reference_.get(), want.sums);
  const std::vector<double> want_grad_sums = ReadDoubles(reference_.get(), want.grad_sums);
  EXPECT_EQ(sums[2 * cols], n);
  for (int64_t c = 0; c < 2 * cols; ++c) {
    EXPECT_NEAR(sums[c], want_sums[c], 1e-9);
    EXPECT_NEAR(grad_sums[c], want_grad_sums[c], 1e-3);
  }
  ExpectNear(got.stats, want.stats, 1e-5);
  ExpectNear(got.y, want.y, 1e-5);
  ExpectNear(got.dx, want.dx, 1e-5);
  ExpectNear(got.mean, want.mean, 1e-6);
  ExpectNear(got.variance, want.variance, 1e-6);
  ExpectNear(got.fixed, want.fixed, 1e-5);
}

TEST_P(BackendConformance, MomentsOfNothingChangeNoStatistics) {
  const Tensor sums = New(1, 5, 0, DType::kF64), mean = Of({{1, 2}}), variance = Of({{3, 4}});
  backend_->Moments(New(0, 2), sums);
  backend_->BatchNormRunning(ControlThatApplies(backend_.get()), sums, 0.9f, mean, variance);
  EXPECT_EQ(Values(mean), (std::vector<float>{1, 2}));
  EXPECT_EQ(Values(variance), (std::vector<float>{3, 4}));
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

}  // namespace
}  // namespace satrap
