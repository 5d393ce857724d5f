#include "nn_worker/device/kernels/bce_with_logits.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/device_testing.h"

namespace satrap {
namespace {

struct Samples {
  std::vector<float> logits, labels, weights, mask;  // the last two may be empty
};

struct Result {
  std::vector<double> sums;
  std::vector<float> dlogits;
};

// `values` as every `stride`-th value of a longer array, with NaN in between.
std::vector<float> Spread(const std::vector<float>& values, int64_t stride) {
  std::vector<float> spread(values.size() * stride, std::numeric_limits<float>::quiet_NaN());
  for (size_t i = 0; i < values.size(); ++i) spread[i * stride] = values[i];
  return spread;
}

Result Bce(TestDevice* device, const Samples& samples, float gradient_scale = 1,
           int64_t stride = 1) {
  const auto n = static_cast<int64_t>(samples.logits.size());
  const auto column = [&](const std::vector<float>& values) -> Column {
    return {values.empty() ? nullptr : device->Put(Spread(values, stride)), stride};
  };
  StepControl control;
  control.gradient_scale = gradient_scale;
  BceArgs args = {};
  args.control = device->Put(std::vector<StepControl>{control});
  args.samples = n;
  args.logits = column(samples.logits);
  args.labels = column(samples.labels);
  args.weights = column(samples.weights);
  args.mask = column(samples.mask);
  args.dlogits = device->Room<float>(n * stride);
  args.dlogits_stride = stride;
  double* const sums = device->Room<double>(2);
  BceWithLogits(device->stream(), args, device->Room<double>(BcePartials(n)), sums);
  const auto spread = device->Get(args.dlogits, n * stride);
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
  for (const int64_t n : {0, 1, 255, 2048, 5001}) {
    Samples samples = RandomSamples(n);
    for (int64_t i = 0; i < n; ++i) {
      if (samples.mask[i] == 0) samples.labels[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const Result result = Bce(&device_, samples);
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
  const Result a = Bce(&device_, samples), b = Bce(&device_, ones);
  EXPECT_EQ(a.sums, b.sums);
  EXPECT_EQ(a.dlogits, b.dlogits);
  EXPECT_EQ(a.sums[1], 300);
}

TEST_P(KernelTest, ColumnsMayBeSpreadAndGradientsScaled) {
  const Samples samples = RandomSamples(3000);
  const Result plain = Bce(&device_, samples), spread = Bce(&device_, samples, 256, 3);
  EXPECT_EQ(spread.sums, plain.sums);
  for (size_t i = 0; i < plain.dlogits.size(); ++i) {
    ASSERT_EQ(spread.dlogits[i], 256 * plain.dlogits[i]);
  }
}

TEST_P(KernelTest, ANanLogitMakesTheLossNan) {
  Samples samples = RandomSamples(100);
  samples.mask.clear();
  samples.logits[70] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Bce(&device_, samples).sums[0]));
}

TEST_P(KernelTest, TheLossHasTheSameBitsInEveryOrder) {
  const Samples samples = RandomSamples(9000);
  TestDevice forward;
  EXPECT_EQ(Bce(&device_, samples).sums, Bce(&forward, samples).sums);
}

IN_EVERY_ORDER(KernelTest);

}  // namespace
}  // namespace satrap
