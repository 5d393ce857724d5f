#include "embedding_ps/optimizer/ftml.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/optimizer_formulas.h"
#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/decay_state.h"
#include "embedding_ps/optimizer/row_step.h"

namespace satrap {
namespace {

struct FtmlConstants {
  float rate;  // lr (1 - beta1) / (1 - beta1^t)
  float beta2;
  float epsilon;
  float correction2;  // 1 - beta2^t
};

SATRAP_VECTORIZE_SAME_BITS void FtmlStep(const FtmlConstants& constants,
                                         const float* __restrict gradient, float* __restrict values,
                                         float* __restrict second, size_t dim) {
  const FtmlConstants c = constants;  // a copy: the stores below cannot alias it
  for (size_t i = 0; i < dim; ++i) {
    formula::Ftml(c.rate, c.beta2, c.epsilon, c.correction2, gradient[i], values[i], second[i]);
  }
}

class Ftml final : public SparseOptimizer {
 public:
  explicit Ftml(const OptimizerConfig::Ftml& config)
      : beta1_(config.beta1()), beta2_(config.beta2()), epsilon_(config.epsilon()) {}

  int StateSize(int dim) const override { return dim + 1; }
  bool IsElementwise() const override { return false; }
  IdleStep idle_step() const override { return IdleStep::kState; }
  void AgeState(int64_t steps, absl::Span<float> state) const override {
    DecayState(beta2_, steps, state.first(state.size() - 1));
    state.back() += static_cast<float>(steps);
  }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    const size_t dim = values.size();
    float& t = state[dim];
    t = CountOn(t, context.step);
    const double correction1 = 1 - std::pow(static_cast<double>(beta1_), t);
    const FtmlConstants constants = {
        static_cast<float>(context.learning_rate * (1.0 - beta1_) / correction1), beta2_, epsilon_,
        static_cast<float>(1 - std::pow(static_cast<double>(beta2_), t))};
    FtmlStep(constants, gradient.data(), values.data(), state.data(), dim);
  }

 private:
  const float beta1_;
  const float beta2_;
  const float epsilon_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewFtml(const OptimizerConfig::Ftml& config) {
  return std::make_unique<Ftml>(config);
}

}  // namespace satrap
