// Test support: compares an optimizer with a scalar reference in double.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_REFERENCE_CHECK_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_REFERENCE_CHECK_H_

#include <cmath>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "gtest/gtest.h"

namespace satrap {

// Takes 100 steps of `optimizer` on a row of `dim` values with random gradients and learning rates.
// Takes the same steps of `reference`, a callable (learning_rate, gradient, values, state) over
// double and std::vector<double>, whose state starts as InitState sets it. Expects that the values
// differ by at most 2e-6 after each step. `constant_rate`, if given, is the learning rate of all
// steps.
template <typename Reference>
void ExpectFollowsReference(const SparseOptimizer& optimizer, int dim, Reference reference,
                            absl::optional<float> constant_rate = absl::nullopt) {
  SplitMix64 random(17);
  std::vector<float> gradient(dim), values(dim), state(optimizer.StateSize(dim));
  for (float& value : values) value = static_cast<float>(random.NextDouble() - 0.5);
  optimizer.InitState(absl::MakeSpan(state));
  std::vector<double> wanted(values.begin(), values.end());
  std::vector<double> wanted_state(state.begin(), state.end());
  for (int step = 0; step < 100; ++step) {
    for (float& g : gradient) g = static_cast<float>(random.NextDouble() * 2 - 1);
    if (step % 10 == 3) gradient[0] = 0;
    StepContext context;
    context.step = step;
    context.learning_rate =
        constant_rate.value_or(static_cast<float>(0.01 + 0.01 * random.NextDouble()));
    optimizer.Step(context, gradient, absl::MakeSpan(values), absl::MakeSpan(state));
    reference(static_cast<double>(context.learning_rate),
              std::vector<double>(gradient.begin(), gradient.end()), wanted, wanted_state);
    for (int i = 0; i < dim; ++i) {
      ASSERT_NEAR(values[i], wanted[i], 2e-6) << "value " << i << " after step " << step;
    }
  }
}

// Takes one step of a row with a single value.
inline void StepOne(const SparseOptimizer& optimizer, int64_t step, float learning_rate,
                    float gradient, float* value, std::vector<float>* state) {
  StepContext context;
  context.step = step;
  context.learning_rate = learning_rate;
  optimizer.Step(context, {gradient}, absl::MakeSpan(value, 1), absl::MakeSpan(*state));
}

// The state of a newly created row of one value.
inline std::vector<float> NewState(const SparseOptimizer& optimizer) {
  std::vector<float> state(optimizer.StateSize(1));
  optimizer.InitState(absl::MakeSpan(state));
  return state;
}

inline std::unique_ptr<const SparseOptimizer> OptimizerOf(const SparseOptimizerConfig& config) {
  auto optimizer = NewSparseOptimizer(config);
  CHECK(optimizer.ok()) << optimizer.status().ToString();
  return *std::move(optimizer);
}

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_REFERENCE_CHECK_H_
