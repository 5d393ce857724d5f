#include "embedding_ps/optimizer/sgd.h"

#include "common/numeric/optimizer_formulas.h"
#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

SATRAP_VECTORIZE_SAME_BITS void SgdStep(float learning_rate, const float* __restrict gradient,
                                        float* __restrict values, size_t dim) {
  for (size_t i = 0; i < dim; ++i) formula::Sgd(learning_rate, gradient[i], values[i]);
}

SATRAP_VECTORIZE_SAME_BITS void SgdSteps(float learning_rate, float l2, float factor,
                                         const SegmentRows& rows) {
  for (size_t row = 0; row < rows.count; ++row) {
    float* const values = rows.values + row * rows.stride;
    for (size_t i = 0; i < rows.dim; ++i) {
      formula::Sgd(learning_rate, l2 * values[i] * factor, values[i]);
    }
  }
}

class Sgd final : public SparseOptimizer {
 public:
  int StateSize(int) const override { return 0; }
  bool IsElementwise() const override { return true; }
  IdleStep idle_step() const override { return IdleStep::kNothing; }
  void InitState(absl::Span<float>) const override {}
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float>) const override {
    SgdStep(context.learning_rate, gradient.data(), values.data(), values.size());
  }
  bool StepDecayed(const StepContext& context, float l2, float factor,
                   const SegmentRows& rows) const override {
    SgdSteps(context.learning_rate, l2, factor, rows);
    return true;
  }
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewSgd(const OptimizerConfig::Sgd&) {
  return std::make_unique<Sgd>();
}

}  // namespace satrap
