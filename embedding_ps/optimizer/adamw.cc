#include "embedding_ps/optimizer/adamw.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/bias_correction.h"
#include "embedding_ps/optimizer/row_step.h"

namespace satrap {
namespace {

struct AdamwConstants {
  float learning_rate;
  float beta1;
  float beta2;
  float epsilon;
  float weight_decay;
  float correction1;  // 1 - beta1^t
  float correction2;  // 1 - beta2^t
};

SATRAP_VECTORIZE_SAME_BITS void AdamwStep(const AdamwConstants& constants,
                                          const float* __restrict gradient,
                                          float* __restrict values, float* __restrict first,
                                          float* __restrict second, size_t dim) {
  const AdamwConstants c = constants;  // a copy: the stores below cannot alias it
  for (size_t i = 0; i < dim; ++i) {
    const float g = gradient[i];
    const float m = c.beta1 * first[i] + (1 - c.beta1) * g;
    const float v = c.beta2 * second[i] + (1 - c.beta2) * g * g;
    first[i] = m;
    second[i] = v;
    const float direction = (m / c.correction1) / (std::sqrt(v / c.correction2) + c.epsilon);
    values[i] -= c.learning_rate * (direction + c.weight_decay * values[i]);
  }
}

class AdamW final : public SparseOptimizer {
 public:
  explicit AdamW(const OptimizerConfig::AdamW& config)
      : beta1_(config.beta1()),
        beta2_(config.beta2()),
        epsilon_(config.epsilon()),
        weight_decay_(config.weight_decay()),
        correction1_(beta1_),
        correction2_(beta2_) {}

  int StateSize(int dim) const override { return 2 * dim + 1; }
  bool IsElementwise() const override { return false; }
  IdleStep idle_step() const override { return IdleStep::kValues; }
  // The moments are 0.
  void AgeState(int64_t steps, absl::Span<float> state) const override {
    state.back() += static_cast<float>(steps);
  }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    const size_t dim = values.size();
    float& t = state[2 * dim];
    t = CountOn(t, context.step);
    const AdamwConstants constants = {
        context.learning_rate, beta1_,          beta2_,         epsilon_,
        weight_decay_,         correction1_(t), correction2_(t)};
    AdamwStep(constants, gradient.data(), values.data(), state.data(), state.data() + dim, dim);
  }

 private:
  const float beta1_;
  const float beta2_;
  const float epsilon_;
  const float weight_decay_;
  const BiasCorrection correction1_;
  const BiasCorrection correction2_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewAdamw(const OptimizerConfig::AdamW& config) {
  return std::make_unique<AdamW>(config);
}

}  // namespace satrap
