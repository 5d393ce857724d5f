#include "embedding_ps/optimizer/adadelta.h"

#include <algorithm>

#include "common/numeric/optimizer_formulas.h"
#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/decay_state.h"

namespace satrap {
namespace {

SATRAP_VECTORIZE_SAME_BITS void AdadeltaStep(float learning_rate, float rho, float epsilon,
                                             const float* __restrict gradient,
                                             float* __restrict values, float* __restrict squares,
                                             float* __restrict steps, size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    formula::Adadelta(learning_rate, rho, epsilon, gradient[i], values[i], squares[i], steps[i]);
  }
}

class Adadelta final : public SparseOptimizer {
 public:
  explicit Adadelta(const OptimizerConfig::Adadelta& config)
      : rho_(config.rho()), epsilon_(config.epsilon()) {}

  int StateSize(int dim) const override { return 2 * dim; }
  bool IsElementwise() const override { return false; }
  IdleStep idle_step() const override { return IdleStep::kState; }
  void AgeState(int64_t steps, absl::Span<float> state) const override {
    DecayState(rho_, steps, state);
  }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    const size_t dim = values.size();
    AdadeltaStep(context.learning_rate, rho_, epsilon_, gradient.data(), values.data(),
                 state.data(), state.data() + dim, dim);
  }

 private:
  const float rho_;
  const float epsilon_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewAdadelta(const OptimizerConfig::Adadelta& config) {
  return std::make_unique<Adadelta>(config);
}

}  // namespace satrap
