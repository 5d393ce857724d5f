#include "embedding_ps/optimizer/rmsprop.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/decay_state.h"

namespace satrap {
namespace {

struct RmspropConstants {
  float learning_rate;
  float rho;
  float epsilon_in_root;  // this or the next is 0
  float epsilon_outside;
  float momentum;
};

// A single function for all forms of RMSProp would have to test in its loop which state exists.
// Instead, the functions below go over the row one after another, each in a plain loop. Each leaves
// its results in `steps` for the next.
SATRAP_VECTORIZE_SAME_BITS void AddSquares(float rho, const float* __restrict gradient,
                                           float* __restrict squares, float* __restrict steps,
                                           size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    const float a = rho * squares[i] + (1 - rho) * gradient[i] * gradient[i];
    squares[i] = a;
    steps[i] = a;
  }
}

SATRAP_VECTORIZE_SAME_BITS void SubtractMean(float rho, const float* __restrict gradient,
                                             float* __restrict means, float* __restrict steps,
                                             size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    const float c = rho * means[i] + (1 - rho) * gradient[i];
    means[i] = c;
    // A variance is never negative, but rounding may make it so.
    steps[i] = std::max(0.0f, steps[i] - c * c);
  }
}

// `steps` holds the mean squares on entry and the steps on return.
SATRAP_VECTORIZE_SAME_BITS void Divide(const RmspropConstants& constants,
                                       const float* __restrict gradient, float* __restrict steps,
                                       size_t dim) {
  const RmspropConstants c = constants;  // a copy: the stores below cannot alias it
  for (size_t i = 0; i < dim; ++i) {
    steps[i] = c.learning_rate * gradient[i] /
               (std::sqrt(steps[i] + c.epsilon_in_root) + c.epsilon_outside);
  }
}

SATRAP_VECTORIZE_SAME_BITS void AddMomentum(float momentum, float* __restrict momenta,
                                            float* __restrict steps, size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    const float m = momentum * momenta[i] + steps[i];
    momenta[i] = m;
    steps[i] = m;
  }
}

SATRAP_VECTORIZE_SAME_BITS void Subtract(const float* __restrict steps, float* __restrict values,
                                         size_t dim) {
  for (size_t i = 0; i < dim; ++i) values[i] -= steps[i];
}

class RmsProp final : public SparseOptimizer {
 public:
  explicit RmsProp(const OptimizerConfig::RmsProp& config)
      : constants_{0, config.rho(), config.epsilon_in_root() ? config.epsilon() : 0,
                   config.epsilon_in_root() ? 0 : config.epsilon(), config.momentum()},
        centred_(config.centred()) {}

  int StateSize(int dim) const override {
    return dim * (1 + (centred_ ? 1 : 0) + (constants_.momentum > 0 ? 1 : 0));
  }
  bool IsElementwise() const override { return !centred_ && constants_.momentum == 0; }
  IdleStep idle_step() const override {
    return constants_.momentum > 0 ? IdleStep::kValues : IdleStep::kState;
  }
  // If there are momenta, they are 0 here, so it is harmless to decay them, too.
  void AgeState(int64_t steps, absl::Span<float> state) const override {
    DecayState(constants_.rho, steps, state);
  }
  void InitState(absl::Span<float> state) const override {
    std::fill(state.begin(), state.end(), 0.0f);
  }
  void Step(const StepContext& context, absl::Span<const float> gradient, absl::Span<float> values,
            absl::Span<float> state) const override {
    RmspropConstants constants = constants_;
    constants.learning_rate = context.learning_rate;
    float steps[kBlock];
    for (size_t begin = 0; begin < values.size(); begin += kBlock) {
      const size_t n = std::min(kBlock, values.size() - begin);
      const float* const g = gradient.data() + begin;
      float* kept = state.data() + begin;  // of a, then c, then m
      AddSquares(constants.rho, g, kept, steps, n);
      if (centred_) SubtractMean(constants.rho, g, kept += values.size(), steps, n);
      Divide(constants, g, steps, n);
      if (constants.momentum > 0) {
        AddMomentum(constants.momentum, kept + values.size(), steps, n);
      }
      Subtract(steps, values.data() + begin, n);
    }
  }

 private:
  static constexpr size_t kBlock = 256;  // values in a block; their steps are on the stack
  const RmspropConstants constants_;     // without the learning rate
  const bool centred_;
};

}  // namespace

std::unique_ptr<const SparseOptimizer> NewRmsprop(const OptimizerConfig::RmsProp& config) {
  return std::make_unique<RmsProp>(config);
}

}  // namespace satrap
