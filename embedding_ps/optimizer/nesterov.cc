#include "embedding_ps/optimizer/nesterov.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

SATRAP_VECTORIZE_SAME_BITS void NesterovStep(float learning_rate, float mu,
                                             const float* __restrict gradient,
                                             float* __restrict values, float* __restrict momenta,
                                             size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    const float before = momenta[i];
    const float m = mu * before - learning_rate * gradient[i];
    momenta[i] = m;
    values[i] += (1 + mu) * m - mu * before;
  }
}

class Nesterov final : public SparseOptimizer {
 public:
  explicit Nesterov(const OptimizerConfig::Nesterov& config) : mu_(config.mu()) {}

  int StateSize(int dim) const override { return dim; }
  bool IsElementwise() const override { return true; }
  IdleStep idle_step() const override { return IdleStep::kValues; }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    NesterovStep(context.learning_rate, mu_, gradient.data(), values.data(), state.data(),
                 values.size());
  }

 private:
  const float mu_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewNesterov(const OptimizerConfig::Nesterov& config) {
  return std::make_unique<Nesterov>(config);
}

}  // namespace satrap
