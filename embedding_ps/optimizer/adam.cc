#include "embedding_ps/optimizer/adam.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/bias_correction.h"
#include "embedding_ps/optimizer/row_step.h"

namespace satrap {
namespace {

struct AdamConstants {
  float learning_rate;
  float beta1;
  float beta2;
  float epsilon;
  float correction1;  // 1 - beta1^t
  float correction2;  // 1 - beta2^t
};

inline void StepValue(const AdamConstants& c, float g, float& value, float& first, float& second) {
  const float m = c.beta1 * first + (1 - c.beta1) * g;
  const float v = c.beta2 * second + (1 - c.beta2) * g * g;
  first = m;
  second = v;
  value -= c.learning_rate * (m / c.correction1) / (std::sqrt(v / c.correction2) + c.epsilon);
}

SATRAP_VECTORIZE_SAME_BITS void AdamStep(const AdamConstants& constants,
                                         const float* __restrict gradient, float* __restrict values,
                                         float* __restrict first, float* __restrict second,
                                         size_t dim) {
  const AdamConstants c = constants;  // a copy: the stores below cannot alias it
  for (size_t i = 0; i < dim; ++i) StepValue(c, gradient[i], values[i], first[i], second[i]);
}

SATRAP_VECTORIZE_SAME_BITS void AdamDecayed(AdamConstants c, const BiasCorrection& correction1,
                                            const BiasCorrection& correction2, float l2,
                                            float factor, int64_t step, const SegmentRows& rows) {
  const size_t dim = rows.dim;
  float last_t = 0;
  for (size_t row = 0; row < rows.count; ++row) {
    float* __restrict const values = rows.values + row * rows.stride;
    float* __restrict const first = rows.state + row * rows.stride;
    float* __restrict const second = first + dim;
    const float t = CountOn(second[dim], step);
    second[dim] = t;
    // Rows that are never left out have taken the same number of steps.
    if (t != last_t) {
      c.correction1 = correction1(t);
      c.correction2 = correction2(t);
      last_t = t;
    }
    for (size_t i = 0; i < dim; ++i) {
      StepValue(c, l2 * values[i] * factor, values[i], first[i], second[i]);
    }
  }
}

class Adam final : public SparseOptimizer {
 public:
  explicit Adam(const OptimizerConfig::Adam& config)
      : beta1_(config.beta1()),
        beta2_(config.beta2()),
        epsilon_(config.epsilon()),
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
    const AdamConstants constants = {context.learning_rate, beta1_,         beta2_, epsilon_,
                                     correction1_(t),       correction2_(t)};
    AdamStep(constants, gradient.data(), values.data(), state.data(), state.data() + dim, dim);
  }
  bool StepDecayed(const StepContext& context, float l2, float factor,
                   const SegmentRows& rows) const override {
    AdamDecayed({context.learning_rate, beta1_, beta2_, epsilon_, 0, 0}, correction1_, correction2_,
                l2, factor, context.step, rows);
    return true;
  }

 private:
  const float beta1_;
  const float beta2_;
  const float epsilon_;
  const BiasCorrection correction1_;
  const BiasCorrection correction2_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewAdam(const OptimizerConfig::Adam& config) {
  return std::make_unique<Adam>(config);
}

}  // namespace satrap
