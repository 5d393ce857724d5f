#include "embedding_ps/optimizer/adagrad.h"

#include <algorithm>

#include "common/numeric/optimizer_formulas.h"
#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

SATRAP_VECTORIZE_SAME_BITS void AdagradStep(float learning_rate, float epsilon,
                                            const float* __restrict gradient,
                                            float* __restrict values,
                                            float* __restrict accumulators, size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    formula::Adagrad(learning_rate, epsilon, gradient[i], values[i], accumulators[i]);
  }
}

class Adagrad final : public SparseOptimizer {
 public:
  explicit Adagrad(const OptimizerConfig::Adagrad& config)
      : initial_accumulator_(config.initial_accumulator()), epsilon_(config.epsilon()) {}

  int StateSize(int dim) const override { return dim; }
  bool IsElementwise() const override { return true; }
  IdleStep idle_step() const override { return IdleStep::kNothing; }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), initial_accumulator_);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    AdagradStep(context.learning_rate, epsilon_, gradient.data(), values.data(), state.data(),
                values.size());
  }

 private:
  const float initial_accumulator_;
  const float epsilon_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewAdagrad(const OptimizerConfig::Adagrad& config) {
  return std::make_unique<Adagrad>(config);
}

}  // namespace satrap
