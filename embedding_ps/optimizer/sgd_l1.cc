#include "embedding_ps/optimizer/sgd_l1.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/row_step.h"

namespace satrap {
namespace {

// In this step every weight owes `due` more. A weight pays the debt to the side of 0 that it is on,
// but is not moved beyond 0. A payment lowers the weight's debt to that side and raises its debt to
// the other side. The part of a payment that is lost when the weight is rounded remains owed.
SATRAP_VECTORIZE_SAME_BITS void StepAndPay(float learning_rate, float due,
                                           const float* __restrict gradient,
                                           float* __restrict values, float* __restrict from_above,
                                           float* __restrict from_below, size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    const float z = values[i] - learning_rate * gradient[i];
    const float owed_above = from_above[i] + due;
    const float owed_below = from_below[i] + due;
    const float left_above = std::max(0.0f, z - owed_above);
    const float left_below = std::min(0.0f, z + owed_below);
    // A NaN is kept, so that a broken model is noticed.
    const float w = z > 0 ? left_above : z < 0 ? left_below : z;
    values[i] = w;
    from_above[i] = owed_above + (w - z);
    from_below[i] = owed_below - (w - z);
  }
}

class SgdL1 final : public SparseOptimizer {
 public:
  explicit SgdL1(const SparseOptimizerConfig::SgdL1& config) : l1_(config.l1()) {}

  int StateSize(int dim) const override { return 2 * dim + 1; }
  bool IsElementwise() const override { return false; }
  IdleStep idle_step() const override { return IdleStep::kValues; }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    const size_t dim = values.size();
    float& last_step = state[2 * dim];
    const int64_t passed = StepsPassed(last_step, context.step);
    float due = 0;
    if (passed > 0) {
      due = context.learning_rate * l1_ * static_cast<float>(passed);
      last_step = EncodedStep(context.step);
    }
    StepAndPay(context.learning_rate, due, gradient.data(), values.data(), state.data(),
               state.data() + dim, dim);
  }

 private:
  const float l1_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewSgdL1(const SparseOptimizerConfig::SgdL1& config) {
  return std::make_unique<SgdL1>(config);
}

}  // namespace satrap
