#include "nn_worker/device/kernels/optimizer_step.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/device_testing.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/fill.h"

namespace satrap {
namespace {

constexpr float kL2 = 0.01f;
StepControl Applies() {
  StepControl control;
  control.apply = 1;
  control.learning_rate = 0.1f;
  control.scale = 0.25f;
  control.correction1 = 0.271f;
  control.correction2 = 0.002f;
  return control;
}
const StepControl kControl = Applies();
constexpr AdamConstants kAdam = {0.9f, 0.999f, 1e-8f};
constexpr float kEpsilon = 1e-6f;

struct State {
  std::vector<float> gradient, w, first, second;
};

State RandomState(int64_t count) {
  State state{RandomValues(count, 1), RandomValues(count, 2), RandomValues(count, 3),
              RandomValues(count, 4)};
  for (float& value : state.second) value = std::abs(value);  // Adam's v
  return state;
}

// The state after `steps` calls of step(what, gradient, w, first, second, count).
template <typename Step>
State After(TestDevice* device, const State& before, const StepControl& control, int steps,
            Step step) {
  const auto count = static_cast<int64_t>(before.w.size());
  const OptimizerStep what = {device->Put(std::vector<StepControl>{control}), kL2};
  const float* const gradient = device->Put(before.gradient);
  float* const w = device->Put(before.w);
  float* const first = device->Put(before.first);
  float* const second = device->Put(before.second);
  for (int i = 0; i < steps; ++i) step(what, gradient, w, first, second, count);
  return {before.gradient, device->Get(w, count), device->Get(first, count),
          device->Get(second, count)};
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& expected) {
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 2e-6 * (1 + std::abs(expected[i]))) << i;
  }
}

std::vector<double> Doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

double Normalised(const State& state, double w, size_t i) {
  return static_cast<double>(state.gradient[i]) * kControl.scale + kL2 * w;
}

// Counts that leave a rest of a group, and one of several blocks.
constexpr int64_t kCounts[] = {1, 4, 1027, 20000};

TEST_P(KernelTest, SgdFollowsItsFormula) {
  for (const int64_t count : kCounts) {
    const State before = RandomState(count);
    const State got = After(&device_, before, kControl, 3,
                            [&](const OptimizerStep& s, auto* g, float* w, float*, float*,
                                int64_t n) { SgdStep(device_.stream(), s, g, w, n); });
    auto w = Doubles(before.w);
    for (int step = 0; step < 3; ++step) {
      for (size_t i = 0; i < w.size(); ++i) {
        w[i] -= kControl.learning_rate * Normalised(before, w[i], i);
      }
    }
    ExpectNear(got.w, w);
  }
}

TEST_P(KernelTest, AdagradFollowsItsFormula) {
  for (const int64_t count : kCounts) {
    State before = RandomState(count);
    for (float& a : before.first) a = std::abs(a) + 0.1f;
    const State got =
        After(&device_, before, kControl, 3,
              [&](const OptimizerStep& s, auto* g, float* w, float* a, float*, int64_t n) {
                AdagradStep(device_.stream(), s, kEpsilon, g, w, a, n);
              });
    auto w = Doubles(before.w), a = Doubles(before.first);
    for (int step = 0; step < 3; ++step) {
      for (size_t i = 0; i < w.size(); ++i) {
        const double g = Normalised(before, w[i], i);
        a[i] += g * g;
        w[i] -= kControl.learning_rate * g / (std::sqrt(a[i]) + kEpsilon);
      }
    }
    ExpectNear(got.w, w);
    ExpectNear(got.first, a);
  }
}

TEST_P(KernelTest, AdamFollowsItsFormula) {
  for (const int64_t count : kCounts) {
    const State before = RandomState(count);
    const State got =
        After(&device_, before, kControl, 3,
              [&](const OptimizerStep& s, auto* g, float* w, float* m, float* v, int64_t n) {
                AdamStep(device_.stream(), s, kAdam, g, w, m, v, n);
              });
    auto w = Doubles(before.w), m = Doubles(before.first), v = Doubles(before.second);
    for (int step = 0; step < 3; ++step) {
      for (size_t i = 0; i < w.size(); ++i) {
        const double g = Normalised(before, w[i], i);
        m[i] = kAdam.beta1 * m[i] + (1 - static_cast<double>(kAdam.beta1)) * g;
        v[i] = kAdam.beta2 * v[i] + (1 - static_cast<double>(kAdam.beta2)) * g * g;
        w[i] -= kControl.learning_rate * (m[i] / kControl.correction1) /
                (std::sqrt(v[i] / kControl.correction2) + kAdam.epsilon);
      }
    }
    ExpectNear(got.w, w);
    ExpectNear(got.first, m);
    ExpectNear(got.second, v);
  }
}

// More values than the largest grid takes at once: its threads take a second turn.
TEST_P(KernelTest, AStepOverMoreValuesThanAGridReachesAllOfThem) {
  const int64_t count = kMaxElementwiseBlocks * kElementwiseThreads * kGroup + 1029;
  const OptimizerStep step = {device_.Put(std::vector<StepControl>{kControl}), 0};
  float* const gradient = device_.Room<float>(count);
  float* const w = device_.Room<float>(count);
  Fill(device_.stream(), MatrixOf(gradient, 1, count), 4);
  Fill(device_.stream(), MatrixOf(w, 1, count), 1);
  SgdStep(device_.stream(), step, gradient, w, count);
  // 1 - 0.1 * 4 * 0.25, once for each value.
  EXPECT_EQ(device_.Get(w, count), std::vector<float>(count, 1 - 0.1f));
}

// A slot of a network begins where the one before it ends.
TEST_P(KernelTest, ArraysMayBeginAnywhere) {
  const State before = RandomState(1001);
  const OptimizerStep step = {device_.Put(std::vector<StepControl>{kControl}), kL2};
  float* const w = device_.Put(before.w);
  AdamStep(device_.stream(), step, kAdam, device_.Put(before.gradient) + 1, w + 1,
           device_.Put(before.first) + 1, device_.Put(before.second) + 1, 999);
  const auto got = device_.Get(w, 1001);
  const State all = After(&device_, before, kControl, 1,
                          [&](const OptimizerStep& s, auto* g, float* w, float* m, float* v,
                              int64_t n) { AdamStep(device_.stream(), s, kAdam, g, w, m, v, n); });
  EXPECT_EQ(got[0], before.w[0]);
  EXPECT_EQ(got[1000], before.w[1000]);
  for (int64_t i = 1; i < 1000; ++i) ASSERT_EQ(got[i], all.w[i]) << i;
}

TEST_P(KernelTest, AStepWithoutItsFlagChangesNothing) {
  State before = RandomState(1000);
  before.gradient[500] = std::numeric_limits<float>::infinity();
  StepControl control = kControl;
  control.apply = 0;
  const State got =
      After(&device_, before, control, 1,
            [&](const OptimizerStep& s, auto* g, float* w, float* m, float* v, int64_t n) {
              SgdStep(device_.stream(), s, g, w, n);
              AdagradStep(device_.stream(), s, kEpsilon, g, w, m, n);
              AdamStep(device_.stream(), s, kAdam, g, w, m, v, n);
            });
  EXPECT_EQ(got.w, before.w);
  EXPECT_EQ(got.first, before.first);
  EXPECT_EQ(got.second, before.second);
}

IN_EVERY_ORDER(KernelTest);

}  // namespace
}  // namespace satrap
