#include "embedding_ps/optimizer/amsgrad.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/bias_correction.h"
#include "embedding_ps/optimizer/row_step.h"

namespace satrap {
namespace {

struct AmsgradConstants {
  float learning_rate;
  float beta1;
  float beta2;
  float epsilon;
  float correction1;  // 1 - beta1^t
  float correction2;  // 1 - beta2^t
};

SATRAP_VECTORIZE_SAME_BITS void AmsgradStep(const AmsgradConstants& constants,
                                            const float* __restrict gradient,
                                            float* __restrict values, float* __restrict first,
                                            float* __restrict second, float* __restrict largest,
                                            size_t dim) {
  const AmsgradConstants c = constants;  // a copy: the stores below cannot alias it
  for (size_t i = 0; i < dim; ++i) {
    const float g = gradient[i];
    const float m = c.beta1 * first[i] + (1 - c.beta1) * g;
    const float v = c.beta2 * second[i] + (1 - c.beta2) * g * g;
    const float x = largest[i] > v ? largest[i] : v;
    first[i] = m;
    second[i] = v;
    largest[i] = x;
    values[i] -= c.learning_rate * (m / c.correction1) / (std::sqrt(x / c.correction2) + c.epsilon);
  }
}

class AmsGrad final : public SparseOptimizer {
 public:
  explicit AmsGrad(const OptimizerConfig::AmsGrad& config)
      : beta1_(config.beta1()),
        beta2_(config.beta2()),
        epsilon_(config.epsilon()),
        correction1_(beta1_),
        correction2_(beta2_) {}

  int StateSize(int dim) const override { return 3 * dim + 1; }
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
    float& t = state[3 * dim];
    t = CountOn(t, context.step);
    const AmsgradConstants constants = {context.learning_rate, beta1_,         beta2_, epsilon_,
                                        correction1_(t),       correction2_(t)};
    AmsgradStep(constants, gradient.data(), values.data(), state.data(), state.data() + dim,
                state.data() + 2 * dim, dim);
  }

 private:
  const float beta1_;
  const float beta2_;
  const float epsilon_;
  const BiasCorrection correction1_;
  const BiasCorrection correction2_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewAmsgrad(const OptimizerConfig::AmsGrad& config) {
  return std::make_unique<AmsGrad>(config);
}

}  // namespace satrap
