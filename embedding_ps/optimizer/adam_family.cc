// Adam, AdamW and AMSGrad are implemented by one class, because they differ only in how one value
// is stepped and in the state that they keep.

#include <algorithm>
#include <type_traits>

#include "common/numeric/optimizer_formulas.h"
#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/adam.h"
#include "embedding_ps/optimizer/adamw.h"
#include "embedding_ps/optimizer/amsgrad.h"
#include "embedding_ps/optimizer/bias_correction.h"
#include "embedding_ps/optimizer/row_step.h"

namespace satrap {
namespace {

using formula::AdamConstants;

// The loops below use local copies of the constants, so that stores into rows cannot alias them.
SATRAP_VECTORIZE_SAME_BITS void AdamStep(const AdamConstants& constants,
                                         const float* __restrict gradient, float* __restrict values,
                                         float* __restrict first, float* __restrict second,
                                         size_t dim) {
  const AdamConstants c = constants;
  for (size_t i = 0; i < dim; ++i) {
    formula::Adam(c, gradient[i], values[i], first[i], second[i]);
  }
}

SATRAP_VECTORIZE_SAME_BITS void AdamwStep(const AdamConstants& constants, float weight_decay,
                                          const float* __restrict gradient,
                                          float* __restrict values, float* __restrict first,
                                          float* __restrict second, size_t dim) {
  const AdamConstants c = constants;
  for (size_t i = 0; i < dim; ++i) {
    formula::AdamW(c, weight_decay, gradient[i], values[i], first[i], second[i]);
  }
}

SATRAP_VECTORIZE_SAME_BITS void AmsgradStep(const AdamConstants& constants,
                                            const float* __restrict gradient,
                                            float* __restrict values, float* __restrict first,
                                            float* __restrict second, float* __restrict largest,
                                            size_t dim) {
  const AdamConstants c = constants;
  for (size_t i = 0; i < dim; ++i) {
    formula::AmsGrad(c, gradient[i], values[i], first[i], second[i], largest[i]);
  }
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
    // Most rows have the same t: all rows that have never been left out of a step have taken the
    // same number of steps.
    if (t != last_t) {
      c.correction1 = correction1(t);
      c.correction2 = correction2(t);
      last_t = t;
    }
    for (size_t i = 0; i < dim; ++i) {
      formula::Adam(c, l2 * values[i] * factor, values[i], first[i], second[i]);
    }
  }
}

// The step of one segment. Its state is kArrays arrays of `dim` values, followed by the step count.
struct AdamUpdate {
  using Config = OptimizerConfig::Adam;
  static constexpr int kArrays = 2;

  explicit AdamUpdate(const Config&) {}
  void operator()(const AdamConstants& constants, const float* gradient, float* values,
                  float* state, size_t dim) const {
    AdamStep(constants, gradient, values, state, state + dim, dim);
  }
};

struct AdamwUpdate {
  using Config = OptimizerConfig::AdamW;
  static constexpr int kArrays = 2;

  explicit AdamwUpdate(const Config& config) : weight_decay(config.weight_decay()) {}
  void operator()(const AdamConstants& constants, const float* gradient, float* values,
                  float* state, size_t dim) const {
    AdamwStep(constants, weight_decay, gradient, values, state, state + dim, dim);
  }

  float weight_decay;
};

struct AmsgradUpdate {
  using Config = OptimizerConfig::AmsGrad;
  static constexpr int kArrays = 3;

  explicit AmsgradUpdate(const Config&) {}
  void operator()(const AdamConstants& constants, const float* gradient, float* values,
                  float* state, size_t dim) const {
    AmsgradStep(constants, gradient, values, state, state + dim, state + 2 * dim, dim);
  }
};

template <typename Update>
class AdamFamily final : public SparseOptimizer {
 public:
  explicit AdamFamily(const typename Update::Config& config)
      : update_(config),
        beta1_(config.beta1()),
        beta2_(config.beta2()),
        epsilon_(config.epsilon()),
        correction1_(beta1_),
        correction2_(beta2_) {}

  int StateSize(int dim) const override { return Update::kArrays * dim + 1; }
  bool IsElementwise() const override { return false; }
  IdleStep idle_step() const override { return IdleStep::kValues; }
  // Only t changes, because the moments are 0 here.
  void AgeState(int64_t steps, absl::Span<float> state) const override {
    state.back() += static_cast<float>(steps);
  }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    const size_t dim = values.size();
    float& t = state[Update::kArrays * dim];
    t = CountOn(t, context.step);
    update_({context.learning_rate, beta1_, beta2_, epsilon_, correction1_(t), correction2_(t)},
            gradient.data(), values.data(), state.data(), dim);
  }
  bool StepDecayed(const StepContext& context, float l2, float factor,
                   const SegmentRows& rows) const override {
    if constexpr (!std::is_same_v<Update, AdamUpdate>) return false;
    AdamDecayed({context.learning_rate, beta1_, beta2_, epsilon_, 0, 0}, correction1_, correction2_,
                l2, factor, context.step, rows);
    return true;
  }

 private:
  const Update update_;
  const float beta1_;
  const float beta2_;
  const float epsilon_;
  const BiasCorrection correction1_;
  const BiasCorrection correction2_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewAdam(const OptimizerConfig::Adam& config) {
  return std::make_unique<AdamFamily<AdamUpdate>>(config);
}

std::unique_ptr<const SparseOptimizer> NewAdamw(const OptimizerConfig::AdamW& config) {
  return std::make_unique<AdamFamily<AdamwUpdate>>(config);
}

std::unique_ptr<const SparseOptimizer> NewAmsgrad(const OptimizerConfig::AmsGrad& config) {
  return std::make_unique<AdamFamily<AmsgradUpdate>>(config);
}

}  // namespace satrap
