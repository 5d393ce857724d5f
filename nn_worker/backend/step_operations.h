// The operations that end a training step: its decision, and the optimizers of the dense network.
//
// Part of Backend, whose rules on memory, order, control, determinism and errors hold.

#ifndef SATRAP_NN_WORKER_BACKEND_STEP_OPERATIONS_H_
#define SATRAP_NN_WORKER_BACKEND_STEP_OPERATIONS_H_

#include "nn_worker/backend/operation_args.h"
#include "nn_worker/backend/step_control.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

class StepOperations {
 public:
  virtual ~StepOperations() = default;

  // Decides a step from its sums over all ranks, (1, kNumStepSums). It counts if it has weight, and
  // applies if it also is finite. scale = 1 / (StepNormalizer (rank/step_normalizer.h) *
  // gradient_scale), in double and rounded once, or 0 without weight; then gradient_scale follows the
  // rule if the step counts. The rest is the plan's.
  virtual void DecideStep(const StepPlan& plan, Tensor sums, Tensor control) = 0;

  // The optimizers change nothing unless the control applies, whatever the gradient holds. Its scale
  // gives the normalised gradient g = gradient * scale + l2 * w. All tensors are (1, values).
  // w -= lr g.
  virtual void SgdStep(Tensor control, float l2, Tensor gradient, Tensor w) = 0;
  // a += g^2; w -= lr g / (sqrt(a) + epsilon).
  virtual void AdagradStep(Tensor control, float l2, float epsilon, Tensor gradient, Tensor w,
                           Tensor a) = 0;
  // Kingma and Ba (2015), algorithm 1.
  virtual void AdamStep(Tensor control, float l2, const AdamArgs& adam, Tensor gradient, Tensor w,
                        Tensor m, Tensor v) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_STEP_OPERATIONS_H_
