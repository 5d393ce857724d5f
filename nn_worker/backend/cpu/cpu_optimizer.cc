#include "nn_worker/backend/cpu/cpu_optimizer.h"

#include <algorithm>

#include "common/numeric/optimizer_formulas.h"
#include "common/numeric/vectorize.h"

namespace satrap::cpu {
namespace {

// The number of values in a block, whose normalised gradients are kept on the stack.
constexpr int64_t kBlock = 256;

// All loops copy the coefficients to local variables. Otherwise the compiler would have to read
// them through the references again after each write to w.
SATRAP_VECTORIZE_FUSED void SgdRange(const StepControl& step, float l2,
                                     const float* __restrict gradient, float* __restrict w,
                                     int64_t count) {
  const float lr = step.learning_rate;
  const float scale = step.scale;
  for (int64_t i = 0; i < count; ++i) formula::Sgd(lr, gradient[i] * scale + l2 * w[i], w[i]);
}

SATRAP_VECTORIZE_FUSED void AdagradRange(const StepControl& step, float l2, float epsilon,
                                         const float* __restrict gradient, float* __restrict w,
                                         float* __restrict a, int64_t count) {
  const float lr = step.learning_rate;
  const float scale = step.scale;
  for (int64_t i = 0; i < count; ++i) {
    formula::Adagrad(lr, epsilon, gradient[i] * scale + l2 * w[i], w[i], a[i]);
  }
}

[[gnu::always_inline]] inline formula::AdamConstants AdamConstantsOf(const StepControl& step,
                                                                     const OptimizerRule& rule) {
  return {step.learning_rate, rule.beta1,       rule.beta2,
          rule.epsilon,       step.correction1, step.correction2};
}

SATRAP_VECTORIZE_FUSED void AdamRange(const StepControl& step, const OptimizerRule& rule, float l2,
                                      const float* __restrict gradient, float* __restrict w,
                                      float* __restrict m, float* __restrict v, int64_t count) {
  const formula::AdamConstants c = AdamConstantsOf(step, rule);
  const float scale = step.scale;
  for (int64_t i = 0; i < count; ++i) {
    formula::Adam(c, gradient[i] * scale + l2 * w[i], w[i], m[i], v[i]);
  }
}

// Computes g = gradient * scale + l2 w + l1 sign(w) for a block, and then applies the weight decay
// to w.
SATRAP_VECTORIZE_FUSED void Normalise(const StepControl& step, const OptimizerRule& rule,
                                      const float* __restrict gradient, float* __restrict w,
                                      float* __restrict normalised, int64_t count) {
  const float scale = step.scale;
  const float decay = step.learning_rate * rule.weight_decay;
  const float l2 = rule.l2, l1 = rule.l1;
  for (int64_t i = 0; i < count; ++i) {
    const float sign = w[i] > 0 ? 1.0f : w[i] < 0 ? -1.0f : 0.0f;
    normalised[i] = gradient[i] * scale + l2 * w[i] + l1 * sign;
    w[i] -= decay * w[i];
  }
}

SATRAP_VECTORIZE_FUSED void RateInsideBlock(float lr, float mu, const float* __restrict gradient,
                                            float* __restrict w, float* __restrict m,
                                            int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    formula::MomentumRateInside(lr, mu, gradient[i], w[i], m[i]);
  }
}

SATRAP_VECTORIZE_FUSED void RateOutsideBlock(float lr, float mu, float share,
                                             const float* __restrict gradient, float* __restrict w,
                                             float* __restrict m, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    formula::MomentumRateOutside(lr, mu, share, gradient[i], w[i], m[i]);
  }
}

SATRAP_VECTORIZE_FUSED void NesterovBlock(float lr, float mu, const float* __restrict gradient,
                                          float* __restrict w, float* __restrict m, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    formula::Nesterov(lr, mu, gradient[i], w[i], m[i]);
  }
}

// RMSProp has a separate loop for each of its parts, because one loop that tests which parts a rule
// has would not be vectorised. `steps` passes values from loop to loop: first mean squares, then
// steps.
SATRAP_VECTORIZE_FUSED void MeanSquares(float rho, const float* __restrict gradient,
                                        float* __restrict a, float* __restrict steps,
                                        int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    a[i] = rho * a[i] + (1 - rho) * gradient[i] * gradient[i];
    steps[i] = a[i];
  }
}

SATRAP_VECTORIZE_FUSED void SubtractSquaredMeans(float rho, const float* __restrict gradient,
                                                 float* __restrict c, float* __restrict steps,
                                                 int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    c[i] = rho * c[i] + (1 - rho) * gradient[i];
    // Rounding may make the variance negative. A NaN stays NaN.
    const float variance = steps[i] - c[i] * c[i];
    steps[i] = variance < 0 ? 0 : variance;
  }
}

SATRAP_VECTORIZE_FUSED void DivideByRoots(float lr, float epsilon_in_root, float epsilon,
                                          const float* __restrict gradient, float* __restrict steps,
                                          int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    steps[i] = lr * gradient[i] / (__builtin_sqrtf(steps[i] + epsilon_in_root) + epsilon);
  }
}

SATRAP_VECTORIZE_FUSED void AddMomenta(float mu, float* __restrict m, float* __restrict steps,
                                       int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    m[i] = mu * m[i] + steps[i];
    steps[i] = m[i];
  }
}

SATRAP_VECTORIZE_FUSED void Subtract(const float* __restrict steps, float* __restrict w,
                                     int64_t count) {
  for (int64_t i = 0; i < count; ++i) w[i] -= steps[i];
}

void RmsPropBlock(float lr, const OptimizerRule& rule, const OptimizerArrays& block) {
  float steps[kBlock];
  MeanSquares(rule.rho, block.gradient, block.states[0], steps, block.count);
  int state = 1;
  if (rule.centred) {
    SubtractSquaredMeans(rule.rho, block.gradient, block.states[state++], steps, block.count);
  }
  DivideByRoots(lr, rule.epsilon_in_root, rule.epsilon, block.gradient, steps, block.count);
  if (rule.mu > 0) AddMomenta(rule.mu, block.states[state], steps, block.count);
  Subtract(steps, block.w, block.count);
}

SATRAP_VECTORIZE_FUSED void AdadeltaBlock(float lr, float rho, float epsilon,
                                          const float* __restrict gradient, float* __restrict w,
                                          float* __restrict a, float* __restrict u, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    formula::Adadelta(lr, rho, epsilon, gradient[i], w[i], a[i], u[i]);
  }
}

SATRAP_VECTORIZE_FUSED void AmsGradBlock(const StepControl& step, const OptimizerRule& rule,
                                         const float* __restrict gradient, float* __restrict w,
                                         float* __restrict m, float* __restrict v,
                                         float* __restrict largest, int64_t count) {
  const formula::AdamConstants c = AdamConstantsOf(step, rule);
  for (int64_t i = 0; i < count; ++i) {
    formula::AmsGrad(c, gradient[i], w[i], m[i], v[i], largest[i]);
  }
}

SATRAP_VECTORIZE_FUSED void FtrlBlock(float lr, const OptimizerRule& rule,
                                      const float* __restrict gradient, float* __restrict w,
                                      float* __restrict z, float* __restrict n, int64_t count) {
  const float beta = rule.beta, lambda1 = rule.lambda1, lambda2 = rule.lambda2;
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i];
    const float value = w[i];
    const float squares = n[i] + g * g;
    const float quadratic = (beta + __builtin_sqrtf(squares)) / lr + lambda2;
    const float sign = value > 0 ? 1.0f : value < 0 ? -1.0f : 0.0f;
    const float linear = (sign == 0 ? z[i] : -value * quadratic - sign * lambda1) + g;
    // Where w keeps its sign, lambda1 cancels out. This shorter form loses no digits, and a zero
    // gradient leaves w unchanged.
    const bool keeps_sign = sign != 0 && -sign * linear > lambda1;
    const float shrunk = linear > lambda1    ? lambda1 - linear
                         : linear < -lambda1 ? -lambda1 - linear
                                             : 0.0f;
    const float after = keeps_sign ? value - g / quadratic : shrunk / quadratic;
    // A NaN is kept, so that a broken model is noticed.
    w[i] = value == value ? after : value;
    z[i] = linear;
    n[i] = squares;
  }
}

SATRAP_VECTORIZE_FUSED void FtmlBlock(const StepControl& step, const OptimizerRule& rule,
                                      const float* __restrict gradient, float* __restrict w,
                                      float* __restrict v, int64_t count) {
  const float rate = step.learning_rate * (1 - rule.beta1) / step.correction1;
  const float correction2 = step.correction2;
  const float beta2 = rule.beta2, epsilon = rule.epsilon;
  for (int64_t i = 0; i < count; ++i) {
    formula::Ftml(rate, beta2, epsilon, correction2, gradient[i], w[i], v[i]);
  }
}

// One step with block.gradient * step.scale + l2 w. REQUIRES: for kinds after kAdam, block.gradient
// is normalised and block.count <= kBlock
void Update(const StepControl& step, const OptimizerRule& rule, float l2,
            const OptimizerArrays& block) {
  const float lr = step.learning_rate;
  const float* const g = block.gradient;
  float* const w = block.w;
  const auto [s0, s1, s2] = block.states;
  switch (rule.kind) {
    case OptimizerKind::kSgd:
      return SgdRange(step, l2, g, w, block.count);
    case OptimizerKind::kAdagrad:
      return AdagradRange(step, l2, rule.epsilon, g, w, s0, block.count);
    case OptimizerKind::kAdam:
      return AdamRange(step, rule, l2, g, w, s0, s1, block.count);
    case OptimizerKind::kMomentumRateInside:
      return RateInsideBlock(lr, rule.mu, g, w, s0, block.count);
    case OptimizerKind::kMomentumRateOutside:
      return RateOutsideBlock(lr, rule.mu, 1 - rule.dampening, g, w, s0, block.count);
    case OptimizerKind::kNesterov:
      return NesterovBlock(lr, rule.mu, g, w, s0, block.count);
    case OptimizerKind::kRmsProp:
      return RmsPropBlock(lr, rule, block);
    case OptimizerKind::kAdadelta:
      return AdadeltaBlock(lr, rule.rho, rule.epsilon, g, w, s0, s1, block.count);
    case OptimizerKind::kAmsGrad:
      return AmsGradBlock(step, rule, g, w, s0, s1, s2, block.count);
    case OptimizerKind::kFtrl:
      // A rate of 0 changes nothing, and the formula would divide by it.
      if (lr != 0) FtrlBlock(lr, rule, g, w, s0, s1, block.count);
      return;
    case OptimizerKind::kFtml:
      return FtmlBlock(step, rule, g, w, s0, block.count);
  }
}

OptimizerArrays Piece(const OptimizerArrays& arrays, int64_t begin, int64_t count) {
  OptimizerArrays piece = arrays;
  piece.gradient += begin;
  piece.w += begin;
  for (float*& state : piece.states) {
    if (state != nullptr) state += begin;
  }
  piece.count = count;
  return piece;
}

SATRAP_VECTORIZE_FUSED void Blend(float decay, const float* __restrict w, float* __restrict average,
                                  int64_t count) {
  for (int64_t i = 0; i < count; ++i) average[i] = decay * average[i] + (1 - decay) * w[i];
}

}  // namespace

void OptimizerRange(const StepControl& step, const OptimizerRule& rule,
                    const OptimizerArrays& arrays) {
  StepControl own = step;
  own.learning_rate *= rule.rate_factor;
  // Without l1 and weight decay these kinds read the gradient only once, directly from its array.
  if (rule.kind <= OptimizerKind::kAdam && rule.l1 == 0 && rule.weight_decay == 0) {
    return Update(own, rule, rule.l2, arrays);
  }
  StepControl of_block = own;
  of_block.scale = 1;
  float normalised[kBlock];
  for (int64_t at = 0; at < arrays.count; at += kBlock) {
    OptimizerArrays block = Piece(arrays, at, std::min(kBlock, arrays.count - at));
    Normalise(own, rule, block.gradient, block.w, normalised, block.count);
    block.gradient = normalised;
    Update(of_block, rule, /*l2=*/0, block);
  }
}

void AverageRange(const StepControl& step, float decay, const float* w, float* average,
                  int64_t count) {
  Blend(AverageDecay(decay, step.step), w, average, count);
}

}  // namespace satrap::cpu
