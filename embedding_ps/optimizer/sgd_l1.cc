#include "embedding_ps/optimizer/sgd_l1.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/row_step.h"

namespace satrap {
namespace {

SATRAP_VECTORIZE_SAME_BITS void StepAndPay(float learning_rate, float owed,
                                           const float* __restrict gradient,
                                           float* __restrict values, float* __restrict paid,
                                           size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    const float z = values[i] - learning_rate * gradient[i];
    const float q = paid[i];
    const float from_above = std::max(0.0f, z - (owed + q));
    const float from_below = std::min(0.0f, z + (owed - q));
    // A NaN passes through, so that a broken model shows.
    const float w = z > 0 ? from_above : z < 0 ? from_below : z;
    values[i] = w;
    paid[i] = q + (w - z);
  }
}

class SgdL1 final : public SparseOptimizer {
 public:
  explicit SgdL1(const SparseOptimizerConfig::SgdL1& config) : l1_(config.l1()) {}

  int StateSize(int dim) const override { return dim + 2; }
  bool IsElementwise() const override { return false; }
  IdleStep idle_step() const override { return IdleStep::kValues; }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    const size_t dim = values.size();
    float& owed = state[dim];
    float& last_step = state[dim + 1];
    const int64_t passed = StepsPassed(last_step, context.step);
    if (passed > 0) {
      owed += context.learning_rate * l1_ * static_cast<float>(passed);
      last_step = EncodedStep(context.step);
    }
    StepAndPay(context.learning_rate, owed, gradient.data(), values.data(), state.data(), dim);
  }

 private:
  const float l1_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewSgdL1(const SparseOptimizerConfig::SgdL1& config) {
  return std::make_unique<SgdL1>(config);
}

}  // namespace satrap
