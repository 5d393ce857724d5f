#include "nn_worker/device/kernels/optimizer_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/testing/reference_optimizer.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/fill.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

StepControl Applies() {
  StepControl control;
  control.apply = 1;
  control.learning_rate = 0.1f;
  control.scale = 0.25f;
  control.correction1 = 0.271f;
  control.correction2 = 0.2f;
  return control;
}
const StepControl kControl = Applies();

struct State {
  std::vector<float> gradient, w;
  std::vector<std::vector<float>> states;
};

State RandomState(const OptimizerRule& rule, int64_t count) {
  State state{RandomValues(count, 1), RandomValues(count, 2), {}};
  for (int s = 0; s < NumStates(rule); ++s) {
    state.states.push_back(RandomValues(count, 3 + s));
    for (float& value : state.states.back()) value = std::abs(value);  // some are squares
  }
  return state;
}

// The state after `steps` steps over all values except the first `skip` and the last `skip`, which
// the steps do not change.
State After(const HostDeviceOptions& options, const OptimizerRule& rule, const State& before,
            const StepControl& control, int steps, int64_t skip = 0) {
  // Each run uses a new device, because waits take longer when more memory was allocated on a
  // device.
  TestDevice own(options);
  TestDevice* const device = &own;
  const auto count = static_cast<int64_t>(before.w.size());
  const StepControl* const what = device->Put(std::vector<StepControl>{control});
  float* const w = device->Put(before.w);
  OptimizerArrays arrays = {device->Put(before.gradient) + skip, w + skip, {}, count - 2 * skip};
  for (size_t s = 0; s < before.states.size(); ++s) {
    arrays.states[s] = device->Put(before.states[s]) + skip;
  }
  for (int i = 0; i < steps; ++i) OptimizerStep(device->stream(), what, rule, arrays);
  State after{before.gradient, device->Get(w, count), {}};
  for (size_t s = 0; s < before.states.size(); ++s) {
    after.states.push_back(device->Get(arrays.states[s] - skip, count));
  }
  return after;
}

State ReferenceAfter(const OptimizerRule& rule, State state, int steps) {
  const auto count = static_cast<int64_t>(state.w.size());
  std::vector<Tensor> states;
  for (std::vector<float>& values : state.states) {
    states.push_back(TensorF32(values.data(), 1, count));
  }
  for (int i = 0; i < steps; ++i) {
    reference::OptimizerStep(kControl, rule, TensorF32(state.gradient.data(), 1, count),
                             TensorF32(state.w.data(), 1, count), states);
  }
  return state;
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& expected) {
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 2e-6 * (1 + std::abs(expected[i]))) << i;
  }
}

TEST_P(KernelTest, EveryRuleFollowsItsFormula) {
  // Two counts are not multiples of a group, and one needs two blocks.
  for (const int64_t count : {1, 4, 1027}) {
    for (const OptimizerRule& rule : reference::RulesOfEveryKind()) {
      SCOPED_TRACE(static_cast<int>(rule.kind));
      const State before = RandomState(rule, count);
      const State got = After(GetParam(), rule, before, kControl, 3);
      const State want = ReferenceAfter(rule, before, 3);
      ExpectNear(got.w, want.w);
      for (size_t s = 0; s < got.states.size(); ++s) ExpectNear(got.states[s], want.states[s]);
    }
  }
}

// There are more values than the largest grid handles at once, so some threads handle a second
// group.
TEST_P(KernelTest, AStepOverMoreValuesThanAGridReachesAllOfThem) {
  const int64_t count = kMaxElementwiseBlocks * kElementwiseThreads * kGroup + 1029;
  const StepControl* const control = device_.Put(std::vector<StepControl>{kControl});
  float* const gradient = device_.Room<float>(count);
  float* const w = device_.Room<float>(count);
  Fill(device_.stream(), MatrixOf(gradient, 1, count), 4);
  Fill(device_.stream(), MatrixOf(w, 1, count), 1);
  // The first copy covers the first 64 values. After a gap of one group, the second copy covers all
  // other values.
  const int64_t first = 64, second = first + kGroup;
  float* const copy = device_.Room<float>(count);
  Fill(device_.stream(), MatrixOf(copy, 1, count), 7);
  const RoundedWeights* const copies = device_.Put(std::vector<RoundedWeights>{
      {0, MatrixOf(copy, 1, first)}, {second, MatrixOf(copy + second, 1, count - second)}});
  OptimizerStep(device_.stream(), control, OptimizerRule(), {gradient, w, {}, count, copies, 2});
  // The expected value is 1 - 0.1 * 4 * 0.25, so each value was updated exactly once.
  std::vector<float> want(count, 1 - 0.1f);
  EXPECT_EQ(device_.Get(w, count), want);
  std::fill_n(want.begin() + first, kGroup, 7.0f);
  EXPECT_EQ(device_.Get(copy, count), want);
}

// The arrays of a network are aligned, but those of other callers may begin anywhere.
TEST_P(KernelTest, ArraysMayBeginAnywhere) {
  for (const OptimizerRule& rule : reference::RulesOfEveryKind()) {
    const State before = RandomState(rule, 1001);
    const std::vector<float> got = After(GetParam(), rule, before, kControl, 1, /*skip=*/1).w;
    const std::vector<float> all = After(GetParam(), rule, before, kControl, 1).w;
    EXPECT_EQ(got[0], before.w[0]);
    EXPECT_EQ(got[1000], before.w[1000]);
    for (int64_t i = 1; i < 1000; ++i) ASSERT_EQ(got[i], all[i]) << i;
  }
}

TEST_P(KernelTest, AStepWithoutItsFlagChangesNothing) {
  StepControl control = kControl;
  control.apply = 0;
  for (const OptimizerRule& rule : reference::RulesOfEveryKind()) {
    State before = RandomState(rule, 1000);
    before.gradient[500] = std::numeric_limits<float>::infinity();
    const State got = After(GetParam(), rule, before, control, 1);
    EXPECT_EQ(got.w, before.w);
    EXPECT_EQ(got.states, before.states);
  }
}

TEST_P(KernelTest, AnAverageIsTheMeanOfItselfAndTheValuesUnlessTheFlagIsOff) {
  StepControl control = kControl;
  control.step = 1000000;
  for (const int64_t count : {1, 4, 1027}) {
    const std::vector<float> w = RandomValues(count, 1), before = RandomValues(count, 2);
    for (const uint32_t apply : {0, 1}) {
      control.apply = apply;
      float* const average = device_.Put(before);
      AverageStep(device_.stream(), device_.Put(std::vector<StepControl>{control}), 0.75f,
                  device_.Put(w), average, count);
      std::vector<float> want = before;
      for (int64_t i = 0; i < count && apply != 0; ++i) want[i] = 0.75f * before[i] + 0.25f * w[i];
      ExpectNear(device_.Get(average, count), want);
    }
  }
}

}  // namespace
}  // namespace satrap
