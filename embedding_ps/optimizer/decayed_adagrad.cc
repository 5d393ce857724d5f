#include "embedding_ps/optimizer/decayed_adagrad.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/decay_state.h"

namespace satrap {
namespace {

SATRAP_VECTORIZE_SAME_BITS void DecayedAdagradStep(float learning_rate, float epsilon, float decay,
                                                   const float* __restrict gradient,
                                                   float* __restrict values,
                                                   float* __restrict accumulators, size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    const float accumulator = decay * accumulators[i] + gradient[i] * gradient[i];
    accumulators[i] = accumulator;
    values[i] -= learning_rate * gradient[i] / (std::sqrt(accumulator) + epsilon);
  }
}

class DecayedAdagrad final : public SparseOptimizer {
 public:
  explicit DecayedAdagrad(const SparseOptimizerConfig::DecayedAdagrad& config)
      : initial_accumulator_(config.initial_accumulator()),
        epsilon_(config.epsilon()),
        decay_(config.decay()) {}

  int StateSize(int dim) const override { return dim; }
  bool IsElementwise() const override { return true; }
  IdleStep idle_step() const override { return IdleStep::kState; }
  void AgeState(int64_t steps, absl::Span<float> state) const override {
    DecayState(decay_, steps, state);
  }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), initial_accumulator_);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    DecayedAdagradStep(context.learning_rate, epsilon_, decay_, gradient.data(), values.data(),
                       state.data(), values.size());
  }

 private:
  const float initial_accumulator_;
  const float epsilon_;
  const float decay_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewDecayedAdagrad(
    const SparseOptimizerConfig::DecayedAdagrad& config) {
  return std::make_unique<DecayedAdagrad>(config);
}

}  // namespace satrap
