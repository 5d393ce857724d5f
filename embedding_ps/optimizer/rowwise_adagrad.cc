#include "embedding_ps/optimizer/rowwise_adagrad.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

SATRAP_VECTORIZE_SAME_BITS void ScaledStep(float learning_rate, float divisor,
                                           const float* __restrict gradient,
                                           float* __restrict values, size_t dim) {
  for (size_t i = 0; i < dim; ++i) values[i] -= learning_rate * gradient[i] / divisor;
}

class RowwiseAdagrad final : public SparseOptimizer {
 public:
  explicit RowwiseAdagrad(const SparseOptimizerConfig::RowwiseAdagrad& config)
      : initial_accumulator_(config.initial_accumulator()), epsilon_(config.epsilon()) {}

  int StateSize(int) const override { return 1; }
  bool IsElementwise() const override { return false; }
  IdleStep idle_step() const override { return IdleStep::kNothing; }
  void InitState(absl::Span<float> state) const override { state[0] = initial_accumulator_; }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    // Summed in a fixed order, so that the sum does not depend on the CPU's vector width.
    float squares = 0;
    for (const float g : gradient) squares += g * g;
    state[0] += squares / static_cast<float>(gradient.size());
    ScaledStep(context.learning_rate, std::sqrt(state[0]) + epsilon_, gradient.data(),
               values.data(), values.size());
  }

 private:
  const float initial_accumulator_;
  const float epsilon_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewRowwiseAdagrad(
    const SparseOptimizerConfig::RowwiseAdagrad& config) {
  return std::make_unique<RowwiseAdagrad>(config);
}

}  // namespace satrap
