#include "nn_worker/device/kernels/losses.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

struct Samples {
  std::vector<float> logits, labels, weights, mask;  // the last two may be empty
};

struct Result {
  std::vector<double> sums;
  std::vector<float> dlogits;
};

// A longer array in which every `stride`-th value comes from `values`, and the others are NaN.
std::vector<float> Spread(const std::vector<float>& values, int64_t stride) {
  std::vector<float> spread(values.size() * stride, std::numeric_limits<float>::quiet_NaN());
  for (size_t i = 0; i < values.size(); ++i) spread[i * stride] = values[i];
  return spread;
}

using SampleLoss = void (*)(DeviceStream*, const SampleLossArgs&, double*, double*);

Result Lose(TestDevice* device, SampleLoss lose, const Samples& samples, float gradient_scale = 1,
            int64_t stride = 1) {
  const auto n = static_cast<int64_t>(samples.logits.size());
  const auto column = [&](const std::vector<float>& values) -> Column {
    return {values.empty() ? nullptr : device->Put(Spread(values, stride)), stride};
  };
  StepControl control;
  control.gradient_scale = gradient_scale;
  SampleLossArgs args = {};
  args.control = device->Put(std::vector<StepControl>{control});
  args.samples = n;
  args.outputs = column(samples.logits);
  args.labels = column(samples.labels);
  args.weights = column(samples.weights);
  args.mask = column(samples.mask);
  args.gradients = device->Room<float>(n * stride);
  args.gradient_stride = stride;
  double* const sums = device->Room<double>(2);
  lose(device->stream(), args, device->Room<double>(LossPartials(n)), sums);
  const auto spread = device->Get(args.gradients, n * stride);
  std::vector<float> dlogits;
  for (int64_t i = 0; i < n * stride; ++i) {
    if (i % stride == 0) {
      dlogits.push_back(spread[i]);
    } else {
      EXPECT_TRUE(std::isnan(spread[i])) << "between the gradients";
    }
  }
  return {device->Get(sums, 2), dlogits};
}

Samples RandomSamples(int64_t n) {
  Samples samples;
  samples.logits = RandomValues(n, 1);
  for (float& z : samples.logits) z *= 20;
  for (const float value : RandomValues(n, 2)) samples.labels.push_back(value > 0 ? 1 : 0);
  for (const float value : RandomValues(n, 3)) samples.weights.push_back(value + 1);
  for (const float value : RandomValues(n, 4)) samples.mask.push_back(value > -0.5f ? 1 : 0);
  return samples;
}

TEST_P(KernelTest, LossAndGradientAreThoseOfALoop) {
  for (const int64_t n : {0, 1, 255, 1024, 2501}) {
    Samples samples = RandomSamples(n);
    for (int64_t i = 0; i < n; ++i) {
      if (samples.mask[i] == 0) samples.labels[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const Result result = Lose(&device_, BceWithLogits, samples);
    double loss = 0, total = 0;
    for (int64_t i = 0; i < n; ++i) {
      double gradient = 0;
      if (samples.mask[i] != 0) {
        const double z = samples.logits[i], y = samples.labels[i], w = samples.weights[i];
        loss += w * (std::max(z, 0.0) - z * y + std::log1p(std::exp(-std::abs(z))));
        total += w;
        gradient = w * (1 / (1 + std::exp(-z)) - y);
      }
      ASSERT_NEAR(result.dlogits[i], gradient, 1e-6) << i;
    }
    EXPECT_NEAR(result.sums[0], loss, 1e-6 * (1 + loss));
    EXPECT_NEAR(result.sums[1], total, 1e-6 * (1 + total));
  }
}

TEST_P(KernelTest, AbsentWeightsAndMaskMeanOne) {
  Samples samples = RandomSamples(300);
  samples.weights.clear();
  samples.mask.clear();
  Samples ones = samples;
  ones.weights.assign(300, 1);
  ones.mask.assign(300, 1);
  const Result a = Lose(&device_, BceWithLogits, samples), b = Lose(&device_, BceWithLogits, ones);
  EXPECT_EQ(a.sums, b.sums);
  EXPECT_EQ(a.dlogits, b.dlogits);
  EXPECT_EQ(a.sums[1], 300);
}

TEST_P(KernelTest, ColumnsMayBeSpreadAndGradientsScaled) {
  const Samples samples = RandomSamples(3000);
  const Result plain = Lose(&device_, BceWithLogits, samples),
               spread = Lose(&device_, BceWithLogits, samples, 256, 3);
  EXPECT_EQ(spread.sums, plain.sums);
  for (size_t i = 0; i < plain.dlogits.size(); ++i) {
    ASSERT_EQ(spread.dlogits[i], 256 * plain.dlogits[i]);
  }
}

TEST_P(KernelTest, ANanLogitMakesTheLossNan) {
  Samples samples = RandomSamples(100);
  samples.mask.clear();
  samples.logits[70] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Lose(&device_, BceWithLogits, samples).sums[0]));
}

TEST_P(KernelTest, TheLossHasTheSameBitsInEveryOrder) {
  const Samples samples = RandomSamples(9000);
  TestDevice forward;
  EXPECT_EQ(Lose(&device_, BceWithLogits, samples).sums,
            Lose(&forward, BceWithLogits, samples).sums);
}

TEST_P(KernelTest, SquaredErrorsAreThoseOfALoop) {
  for (const int64_t n : {0, 1, 1500}) {
    Samples samples = RandomSamples(n);
    for (int64_t i = 0; i < n; ++i) {
      if (samples.mask[i] == 0) samples.labels[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const Result result = Lose(&device_, SquaredError, samples, 4, 2);
    double loss = 0, total = 0;
    for (int64_t i = 0; i < n; ++i) {
      double gradient = 0;
      if (samples.mask[i] != 0) {
        const double error = samples.logits[i] - samples.labels[i], w = samples.weights[i];
        loss += w * error * error;
        total += w;
        gradient = 4 * 2 * w * error;
      }
      ASSERT_NEAR(result.dlogits[i], gradient, 1e-4) << i;
    }
    EXPECT_NEAR(result.sums[0], loss, 1e-6 * (1 + loss));
    EXPECT_NEAR(result.sums[1], total, 1e-6 * (1 + total));
  }
}

StepControl* PutControl(TestDevice* device, float gradient_scale) {
  StepControl control;
  control.gradient_scale = gradient_scale;
  return device->Put(std::vector<StepControl>{control});
}

// Runs the loss with `classes` logits per sample. The label of a masked sample is not a class.
Result LoseClasses(TestDevice* device, const std::vector<float>& logits,
                   const std::vector<float>& labels, const std::vector<float>& weights,
                   const std::vector<float>& mask, int64_t classes, float gradient_scale) {
  const auto n = static_cast<int64_t>(labels.size());
  float* const gradients = device->Room<float>(n * classes);
  double* const sums = device->Room<double>(2);
  const SoftmaxLossArgs args = {PutControl(device, gradient_scale),
                                MatrixOf<const float>(device->Put(logits), n, classes),
                                {device->Put(labels), 1},
                                {device->Put(weights), 1},
                                {device->Put(mask), 1},
                                MatrixOf(gradients, n, classes)};
  SoftmaxCrossEntropy(device->stream(), args, device->Room<double>(RowLossScratch(n)), sums);
  return {device->Get(sums, 2), device->Get(gradients, n * classes)};
}

// Tests one class, fewer classes than a warp has lanes, more classes than that, so many classes
// that a block shares them, and more than a block keeps.
TEST_P(KernelTest, ClassesAreThoseOfALoop) {
  for (const int64_t classes : {1, 3, 10, 200, 300, 4200}) {
    const int64_t n = classes > 256 ? 5 : 1100;
    auto logits = RandomValues(n * classes, 1), labels = RandomValues(n, 2);
    auto weights = RandomValues(n, 3), mask = RandomValues(n, 4);
    for (float& z : logits) z *= 50;
    for (int64_t i = 0; i < n; ++i) {
      mask[i] = mask[i] > -0.5f ? 1 : 0;
      labels[i] = std::floor((labels[i] + 1) / 2 * static_cast<float>(classes));
      if (mask[i] == 0) labels[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const Result result = LoseClasses(&device_, logits, labels, weights, mask, classes, 8);
    double loss = 0, total = 0;
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(double{logits[i * classes + c]});
      for (int64_t c = 0; c < classes; ++c) {
        double gradient = 0;
        if (mask[i] != 0) {
          gradient = std::exp(double{logits[i * classes + c]}) / sum;
          if (c == static_cast<int64_t>(labels[i])) gradient -= 1;
        }
        ASSERT_NEAR(result.dlogits[i * classes + c], 8 * weights[i] * gradient, 1e-4) << i;
      }
      if (mask[i] == 0) continue;
      const auto y = static_cast<int64_t>(labels[i]);
      loss += weights[i] * (std::log(sum) - logits[i * classes + y]);
      total += weights[i];
    }
    EXPECT_NEAR(result.sums[0], loss, 1e-3 * (1 + std::abs(loss)));
    EXPECT_NEAR(result.sums[1], total, 1e-5 * n);
    TestDevice forward;
    EXPECT_EQ(LoseClasses(&forward, logits, labels, weights, mask, classes, 8).sums, result.sums);
  }
}

TEST_P(KernelTest, ALabelThatIsNoClassMakesTheLossNan) {
  for (const float label : {-1.0f, 3.0f, std::numeric_limits<float>::quiet_NaN()}) {
    const Result result = LoseClasses(&device_, {0, 1, 2}, {label}, {1}, {1}, 3, 1);
    EXPECT_TRUE(std::isnan(result.sums[0])) << label;
    for (const float gradient : result.dlogits) EXPECT_TRUE(std::isnan(gradient)) << label;
  }
}

struct Candidates {
  int64_t samples, columns;
  CandidateLossKind kind;
  bool on_diagonal, remove_hits, with_log_q;
};

int64_t PositiveOf(const Candidates& of, int64_t sample) { return of.on_diagonal ? sample : 0; }

struct CandidateInputs {
  std::vector<float> scores, weights, mask, log_q, positive_log_q;
  std::vector<uint32_t> items, positives;
};

// Items occur several times. Scores that do not count are NaN.
CandidateInputs InputsOf(const Candidates& of) {
  const int64_t n = of.samples, columns = of.columns;
  CandidateInputs in;
  in.scores = RandomValues(n * columns, 1);
  in.weights = RandomValues(n, 2);
  in.log_q = RandomValues(columns, 3);
  in.positive_log_q = RandomValues(n, 4);
  for (int64_t c = 0; c < columns; ++c) in.items.push_back(static_cast<uint32_t>(c % 7));
  for (int64_t i = 0; i < n; ++i) {
    in.positives.push_back(static_cast<uint32_t>(i % 7));
    in.mask.push_back(i % 5 == 4 ? 0 : 1);
    for (int64_t c = 0; c < columns; ++c) {
      const bool hit = of.remove_hits && c != PositiveOf(of, i) && in.items[c] == in.positives[i];
      float& z = in.scores[i * columns + c];
      z = in.mask[i] == 0 || hit ? std::numeric_limits<float>::quiet_NaN() : 40 * z;
    }
  }
  return in;
}

// The expected result, computed by a plain loop with a gradient scale of 8.
Result ExpectedOf(const Candidates& of, const CandidateInputs& in) {
  Result want = {std::vector<double>(2, 0), std::vector<float>(in.scores.size(), 0)};
  for (int64_t i = 0; i < of.samples; ++i) {
    if (in.mask[i] == 0) continue;
    const int64_t p = PositiveOf(of, i);
    std::vector<int64_t> counted;
    std::vector<double> z(of.columns);
    double sum = 0, loss = 0;
    for (int64_t c = 0; c < of.columns; ++c) {
      z[c] = in.scores[i * of.columns + c];
      if (std::isnan(z[c])) continue;
      if (of.with_log_q) z[c] -= c == p ? in.positive_log_q[i] : in.log_q[c];
      sum += std::exp(z[c]);
      counted.push_back(c);
    }
    const bool softmax = of.kind == CandidateLossKind::kSoftmax;
    if (softmax) loss = std::log(sum) - z[p];
    for (const int64_t c : counted) {
      const double y = c == p ? 1 : 0;
      const double probability = softmax ? std::exp(z[c]) / sum : 1 / (1 + std::exp(-z[c]));
      if (!softmax) loss += std::max(z[c], 0.0) + std::log1p(std::exp(-std::abs(z[c]))) - y * z[c];
      want.dlogits[i * of.columns + c] = static_cast<float>(8 * in.weights[i] * (probability - y));
    }
    want.sums[0] += in.weights[i] * loss;
    want.sums[1] += in.weights[i];
  }
  return want;
}

Result LoseCandidates(TestDevice* device, const Candidates& of, const CandidateInputs& in) {
  const int64_t n = of.samples, columns = of.columns;
  float* const gradients = device->Room<float>(n * columns);
  double* const sums = device->Room<double>(2);
  CandidateLossArrays args = {};
  args.control = PutControl(device, 8);
  args.scores = MatrixOf<const float>(device->Put(in.scores), n, columns);
  args.positives_on_diagonal = of.on_diagonal;
  if (of.remove_hits) {
    args.items = device->Put(in.items);
    args.positives = device->Put(in.positives);
    args.positives_stride = 1;
  }
  if (of.with_log_q) {
    args.log_q = device->Put(in.log_q);
    args.positive_log_q = {device->Put(in.positive_log_q), 1};
  }
  args.weights = {device->Put(in.weights), 1};
  args.mask = {device->Put(in.mask), 1};
  args.gradients = MatrixOf(gradients, n, columns);
  CandidateLoss(device->stream(), of.kind, args, device->Room<double>(RowLossScratch(n)), sums);
  return {device->Get(sums, 2), device->Get(gradients, n * columns)};
}

// Tests one column, fewer columns than a warp has lanes, more columns than that, so many columns
// that a block shares them, and more than a block keeps. There are also more samples than a piece
// has.
TEST_P(KernelTest, CandidatesAreThoseOfALoop) {
  const auto softmax = CandidateLossKind::kSoftmax, logistic = CandidateLossKind::kLogistic;
  for (const Candidates& of :
       {Candidates{0, 0, softmax, true, true, true}, Candidates{1, 1, softmax, false, true, true},
        Candidates{1100, 9, softmax, false, true, true},
        Candidates{30, 200, softmax, false, false, true},
        Candidates{150, 150, softmax, true, true, false},
        Candidates{5, 300, softmax, true, true, true},
        Candidates{3, 4200, softmax, true, false, true},
        Candidates{5, 300, logistic, true, true, true},
        Candidates{1, 1, logistic, false, true, true},
        Candidates{1100, 9, logistic, false, true, true},
        Candidates{30, 200, logistic, false, false, false},
        Candidates{150, 150, logistic, true, true, true}}) {
    const CandidateInputs in = InputsOf(of);
    const Result got = LoseCandidates(&device_, of, in), want = ExpectedOf(of, in);
    for (size_t i = 0; i < want.dlogits.size(); ++i) {
      ASSERT_NEAR(got.dlogits[i], want.dlogits[i], 1e-4)
          << of.samples << " x " << of.columns << ", value " << i;
      // Gradients of masked samples and of columns that do not count must be exactly 0.
      if (want.dlogits[i] == 0) {
        ASSERT_EQ(got.dlogits[i], 0) << i;
      }
    }
    EXPECT_NEAR(got.sums[0], want.sums[0], 1e-4 * (1 + std::abs(want.sums[0])));
    EXPECT_NEAR(got.sums[1], want.sums[1], 1e-4);
    TestDevice forward;
    const Result again = LoseCandidates(&forward, of, in);
    EXPECT_EQ(again.sums, got.sums);
    EXPECT_EQ(again.dlogits, got.dlogits);
  }
}

TEST_P(KernelTest, ANanScoreThatCountsMakesTheCandidateLossNan) {
  for (const CandidateLossKind kind : {CandidateLossKind::kSoftmax, CandidateLossKind::kLogistic}) {
    float* const gradients = device_.Room<float>(3);
    double* const sums = device_.Room<double>(2);
    CandidateLossArrays args = {};
    args.control = PutControl(&device_, 1);
    args.scores = MatrixOf<const float>(
        device_.Put(std::vector<float>{1, 2, std::numeric_limits<float>::quiet_NaN()}), 1, 3);
    args.gradients = MatrixOf(gradients, 1, 3);
    CandidateLoss(device_.stream(), kind, args, device_.Room<double>(RowLossScratch(1)), sums);
    EXPECT_TRUE(std::isnan(device_.Get(sums, 2)[0]));
    EXPECT_EQ(device_.Get(sums, 2)[1], 1);
    EXPECT_TRUE(std::isnan(device_.Get(gradients, 3)[2]));
  }
}

Result LosePairs(TestDevice* device, const std::vector<float>& scores,
                 const std::vector<uint32_t>& pairs, const std::vector<float>& weights) {
  const auto n = static_cast<int64_t>(scores.size());
  PairLossArgs args = {};
  args.control = PutControl(device, 2);
  args.scores = {device->Put(scores), 1};
  args.pairs = device->Put(pairs);
  args.pair_stride = 2;
  args.num_pairs = static_cast<int64_t>(weights.size());
  args.weights = {device->Put(weights), 1};
  float* const gradients = device->Room<float>(n);
  args.gradients = MatrixOf(gradients, n, 1);
  double* const sums = device->Room<double>(2);
  PairwiseLogistic(device->stream(), args, device->Room<double>(PairLossScratch(args.num_pairs)),
                   sums);
  return {device->Get(sums, 2), device->Get(gradients, n)};
}

// Tests samples with many pairs, one pair and none, and more samples and pairs than a block handles
// at once.
TEST_P(KernelTest, PairsAreThoseOfALoop) {
  for (const int64_t n : {2, 300, 600}) {
    auto scores = RandomValues(n, 1);
    for (float& z : scores) z *= 30;
    std::vector<uint32_t> pairs;
    const int64_t count = n == 2 ? 1 : 1200;
    for (int64_t m = 0; m < count; ++m) {
      pairs.push_back(static_cast<uint32_t>(m * m % (n / 2)));
      pairs.push_back(static_cast<uint32_t>(n / 2 + m % 7 % (n - n / 2)));
    }
    const auto weights = RandomValues(count, 2);
    const Result result = LosePairs(&device_, scores, pairs, weights);
    double loss = 0, total = 0;
    std::vector<double> expected(n, 0);
    for (int64_t m = 0; m < count; ++m) {
      const double x = double{scores[pairs[2 * m + 1]]} - scores[pairs[2 * m]];
      loss += weights[m] * std::log1p(std::exp(x));
      total += weights[m];
      const double gradient = 2 * weights[m] / (1 + std::exp(-x));
      expected[pairs[2 * m]] -= gradient;
      expected[pairs[2 * m + 1]] += gradient;
    }
    for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(result.dlogits[i], expected[i], 1e-3) << i;
    EXPECT_NEAR(result.sums[0], loss, 1e-4 * (1 + std::abs(loss)));
    EXPECT_NEAR(result.sums[1], total, 1e-4);
    TestDevice forward;
    const Result again = LosePairs(&forward, scores, pairs, weights);
    EXPECT_EQ(again.sums, result.sums);
    EXPECT_EQ(again.dlogits, result.dlogits);
  }
}

TEST_P(KernelTest, WithoutPairsGradientsAndSumsAreZero) {
  const Result result = LosePairs(&device_, RandomValues(5, 1), {}, {});
  EXPECT_EQ(result.dlogits, std::vector<float>(5, 0));
  EXPECT_EQ(result.sums, std::vector<double>(2, 0));
}

}  // namespace
}  // namespace satrap
