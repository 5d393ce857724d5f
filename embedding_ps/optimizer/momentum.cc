// Both forms of momentum, and Nesterov's accelerated gradient.

#include "embedding_ps/optimizer/momentum.h"

#include <algorithm>

#include "common/numeric/optimizer_formulas.h"
#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/nesterov.h"

namespace satrap {
namespace {

// The constants of one segment. `share` is the factor of the gradient in the momentum.
struct Constants {
  float learning_rate;
  float mu;
  float share;
};
using StepFunction = void(const Constants& constants, const float* gradient, float* values,
                          float* momenta, size_t dim);

SATRAP_VECTORIZE_SAME_BITS void StepRateInside(const Constants& constants,
                                               const float* __restrict gradient,
                                               float* __restrict values, float* __restrict momenta,
                                               size_t dim) {
  const Constants c = constants;  // a copy: the stores below cannot alias it
  for (size_t i = 0; i < dim; ++i) {
    formula::MomentumRateInside(c.learning_rate, c.mu, gradient[i], values[i], momenta[i]);
  }
}

SATRAP_VECTORIZE_SAME_BITS void StepRateOutside(const Constants& constants,
                                                const float* __restrict gradient,
                                                float* __restrict values, float* __restrict momenta,
                                                size_t dim) {
  const Constants c = constants;
  for (size_t i = 0; i < dim; ++i) {
    formula::MomentumRateOutside(c.learning_rate, c.mu, c.share, gradient[i], values[i],
                                 momenta[i]);
  }
}

SATRAP_VECTORIZE_SAME_BITS void NesterovStep(const Constants& constants,
                                             const float* __restrict gradient,
                                             float* __restrict values, float* __restrict momenta,
                                             size_t dim) {
  const Constants c = constants;
  for (size_t i = 0; i < dim; ++i) {
    formula::Nesterov(c.learning_rate, c.mu, gradient[i], values[i], momenta[i]);
  }
}

class MomentumFamily final : public SparseOptimizer {
 public:
  MomentumFamily(StepFunction* step, float mu, float share) : step_(step), mu_(mu), share_(share) {}

  int StateSize(int dim) const override { return dim; }
  bool IsElementwise() const override { return true; }
  IdleStep idle_step() const override { return IdleStep::kValues; }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    step_({context.learning_rate, mu_, share_}, gradient.data(), values.data(), state.data(),
          values.size());
  }

 private:
  StepFunction* const step_;
  const float mu_;
  const float share_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewMomentum(const OptimizerConfig::Momentum& config) {
  const bool inside = config.form() == OptimizerConfig::Momentum::RATE_INSIDE;
  return std::make_unique<MomentumFamily>(inside ? &StepRateInside : &StepRateOutside, config.mu(),
                                          1 - config.dampening());
}

std::unique_ptr<const SparseOptimizer> NewNesterov(const OptimizerConfig::Nesterov& config) {
  return std::make_unique<MomentumFamily>(&NesterovStep, config.mu(), /*share=*/1.0f);
}

}  // namespace satrap
