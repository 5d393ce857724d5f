#include "embedding_ps/optimizer/ftrl.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

struct FtrlConstants {
  float learning_rate;
  float beta;
  float lambda1;
  float lambda2;
};

SATRAP_VECTORIZE_SAME_BITS void FtrlStep(const FtrlConstants& constants,
                                         const float* __restrict gradient, float* __restrict values,
                                         float* __restrict linear, float* __restrict squares,
                                         size_t dim) {
  const FtrlConstants c = constants;  // a copy: the stores below cannot alias it
  for (size_t i = 0; i < dim; ++i) {
    const float g = gradient[i];
    const float w = values[i];
    const float n = squares[i] + g * g;
    const float quadratic = (c.beta + std::sqrt(n)) / c.learning_rate + c.lambda2;
    // Let s = sgn(w). If w is not 0, the old z and the proximal term add up so that z after the
    // step is -w quadratic - s lambda1 + g. If w is 0, z after the step is z + g.
    const float s = w > 0 ? 1.0f : w < 0 ? -1.0f : 0.0f;
    const float z = (s == 0 ? linear[i] : -w * quadratic - s * c.lambda1) + g;
    const float magnitude = std::fabs(z);
    // If w keeps its sign, lambda1 cancels. The shorter form loses no digits, and a zero gradient
    // leaves w unchanged.
    const bool keeps_sign = s != 0 && -s * z > c.lambda1;
    const float crossed =
        magnitude > c.lambda1 ? (z > 0 ? c.lambda1 - z : -c.lambda1 - z) / quadratic : 0.0f;
    // A NaN is kept, so that a broken model is noticed.
    values[i] = std::isnan(w) ? w : keeps_sign ? w - g / quadratic : crossed;
    linear[i] = z;
    squares[i] = n;
  }
}

class Ftrl final : public SparseOptimizer {
 public:
  explicit Ftrl(const OptimizerConfig::Ftrl& config)
      : constants_{0, config.beta(), config.lambda1(), config.lambda2()},
        initial_accumulator_(config.initial_accumulator()) {}

  int StateSize(int dim) const override { return 2 * dim; }
  bool IsElementwise() const override { return false; }
  IdleStep idle_step() const override { return IdleStep::kNothing; }
  void InitState(absl::Span<float> state) const override {
    const size_t dim = state.size() / 2;
    std::fill(state.begin(), state.begin() + dim, 0.0f);
    std::fill(state.begin() + dim, state.end(), initial_accumulator_);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    FtrlConstants constants = constants_;
    constants.learning_rate = context.learning_rate;
    // A rate of 0 changes nothing, but the formula would divide by it.
    if (constants.learning_rate == 0) return;
    const size_t dim = values.size();
    FtrlStep(constants, gradient.data(), values.data(), state.data(), state.data() + dim, dim);
  }

 private:
  const FtrlConstants constants_;  // without the learning rate
  const float initial_accumulator_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewFtrl(const OptimizerConfig::Ftrl& config) {
  return std::make_unique<Ftrl>(config);
}

}  // namespace satrap
