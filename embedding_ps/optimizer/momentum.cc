#include "embedding_ps/optimizer/momentum.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

SATRAP_VECTORIZE_SAME_BITS void StepRateInside(float learning_rate, float mu,
                                               const float* __restrict gradient,
                                               float* __restrict values, float* __restrict momenta,
                                               size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    const float m = mu * momenta[i] - learning_rate * gradient[i];
    momenta[i] = m;
    values[i] += m;
  }
}

SATRAP_VECTORIZE_SAME_BITS void StepRateOutside(float learning_rate, float mu, float share,
                                                const float* __restrict gradient,
                                                float* __restrict values, float* __restrict momenta,
                                                size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    const float m = mu * momenta[i] + share * gradient[i];
    momenta[i] = m;
    values[i] -= learning_rate * m;
  }
}

class Momentum final : public SparseOptimizer {
 public:
  explicit Momentum(const OptimizerConfig::Momentum& config)
      : form_(config.form()), mu_(config.mu()), share_(1 - config.dampening()) {}

  int StateSize(int dim) const override { return dim; }
  bool IsElementwise() const override { return true; }
  IdleStep idle_step() const override { return IdleStep::kValues; }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    if (form_ == OptimizerConfig::Momentum::RATE_INSIDE) {
      StepRateInside(context.learning_rate, mu_, gradient.data(), values.data(), state.data(),
                     values.size());
    } else {
      StepRateOutside(context.learning_rate, mu_, share_, gradient.data(), values.data(),
                      state.data(), values.size());
    }
  }

 private:
  const OptimizerConfig::Momentum::Form form_;
  const float mu_;
  const float share_;  // of the gradient that m takes
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewMomentum(const OptimizerConfig::Momentum& config) {
  return std::make_unique<Momentum>(config);
}

}  // namespace satrap
