// The operations that end a training step: the decision whether it applies, and the optimizers of
// the dense network.
//
// Part of Backend (backend.h), whose rules on memory, order, control, determinism and errors apply.

#ifndef SATRAP_NN_WORKER_BACKEND_STEP_OPERATIONS_H_
#define SATRAP_NN_WORKER_BACKEND_STEP_OPERATIONS_H_

#include "absl/types/span.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/operation/optimizer_rule.h"
#include "nn_worker/operation/step_control.h"

namespace satrap {

// A 16-bit copy of a parameter in a flat range. `values`, (rows, cols) of F16 or BF16, holds row by
// row the values [begin, begin + rows cols) of the range.
struct WeightCopy {
  int64_t begin = 0;
  Tensor values;
};

class StepOperations {
 public:
  virtual ~StepOperations() = default;

  // Decides a step from its sums over all ranks, (1, kNumStepSums). The step counts if its weight
  // is above 0, and applies if it is also finite. The control's scale becomes 1 / (StepNormalizer *
  // gradient_scale), computed in double and rounded once, or 0 without weight (StepNormalizer:
  // nn_worker/operation/step_normalizer.h). Then, if the step counts, gradient_scale is updated by
  // its rule. The other values are taken from the plan.
  virtual void DecideStep(const StepPlan& plan, Tensor sums, Tensor control) = 0;

  // One step of an optimizer over a flat range. All tensors are (1, values); there are
  // NumStates(rule) `states`. Changes nothing unless the control applies, whatever the gradient
  // holds. For each value, with the control's scale and lr = its learning rate * rate_factor:
  //
  //     g = gradient * scale + l2 w + l1 sign(w); w -= lr weight_decay w
  //
  // and then, with the state arrays in the order in which they occur here and the control's c1 and
  // c2 = 1 - beta1^t and 1 - beta2^t:
  //
  //     kSgd                  w -= lr g
  //     kAdagrad              a += g^2; w -= lr g / (sqrt(a) + epsilon)
  //     kAdam                 m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
  //                           w -= lr (m / c1) / (sqrt(v / c2) + epsilon)
  //     kMomentumRateInside   m = mu m - lr g; w += m
  //     kMomentumRateOutside  m = mu m + (1 - dampening) g; w -= lr m
  //     kNesterov             n = mu m - lr g; w += (1 + mu) n - mu m; m = n
  //     kRmsProp              a = rho a + (1 - rho) g^2; centred: c = rho c + (1 - rho) g and
  //                           a - c^2, at least 0, instead of a;
  //                           s = lr g / (sqrt(a + epsilon_in_root) + epsilon);
  //                           mu > 0: m = mu m + s; w -= m, otherwise w -= s
  //     kAdadelta             a = rho a + (1 - rho) g^2;
  //                           d = g sqrt(u + epsilon) / sqrt(a + epsilon);
  //                           u = rho u + (1 - rho) d^2; w -= lr d
  //     kAmsGrad              as kAdam, with x = max(x, v) instead of v in the last line
  //     kFtrl                 q = (beta + sqrt(n + g^2)) / lr + lambda2; n += g^2;
  //                           z = g + (-w q - sign(w) lambda1, or z where w = 0);
  //                           w = 0 if |z| <= lambda1, else -(z - sign(z) lambda1) / q
  //     kFtml                 v = beta2 v + (1 - beta2) g^2;
  //                           w -= lr (1 - beta1) / c1 g / (sqrt(v / c2) + epsilon)
  //
  // embedding_ps/optimizer/ftrl.h and ftml.h derive the last two from the papers' forms.
  //
  // Afterwards `copies` hold the new values, each rounded once. REQUIRES: the copies held the
  // values of w before; they overlap neither each other nor w; they are in ascending order of
  // `begin`, and each `begin` is a multiple of 16
  virtual void OptimizerStep(Tensor control, const OptimizerRule& rule, Tensor gradient, Tensor w,
                             absl::Span<const Tensor> states,
                             absl::Span<const WeightCopy> copies) = 0;

  // average = d average + (1 - d) w with d = AverageDecay(decay, the control's step), if the
  // control applies. Both (1, values).
  virtual void AverageStep(Tensor control, float decay, Tensor w, Tensor average) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_STEP_OPERATIONS_H_
