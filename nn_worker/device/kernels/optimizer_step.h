// One step of a dense optimizer over a flat range, in one launch, and one step of the averages of
// weights. The formulas are those of nn_worker/backend/step_operations.h.
//
// Settings that change from step to step are read from the network's control when the kernel runs.
// So a captured launch can be repeated, and the device decides whether the step applies. Each value
// is updated by one thread, so the bits do not depend on the launch. That thread also writes the
// rounded value to the copy that products read, which saves a pass over all weights.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_OPTIMIZER_STEP_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_OPTIMIZER_STEP_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/optimizer_rule.h"
#include "nn_worker/operation/step_control.h"

namespace satrap {

// A copy of the values [begin, begin + rows * cols) of w, row by row, in any type. REQUIRES: begin
// is a multiple of 4
struct RoundedWeights {
  int64_t begin;
  Values values;
};

// All arrays are in device memory. `gradient`, `w` and the states have `count` values each. Only
// the first NumStates(rule) states are used; the others are null. The copies are in ascending order
// of `begin`.
struct OptimizerArrays {
  const float* gradient = nullptr;
  float* w = nullptr;
  float* states[kMaxOptimizerStates] = {};
  int64_t count = 0;
  const RoundedWeights* copies = nullptr;
  int64_t num_copies = 0;
};

// `control` is in device memory and decides whether the arrays change.
void OptimizerStep(DeviceStream* stream, const StepControl* control, const OptimizerRule& rule,
                   const OptimizerArrays& arrays);
// average = d average + (1 - d) w, with d = AverageDecay(decay, the control's step).
void AverageStep(DeviceStream* stream, const StepControl* control, float decay, const float* w,
                 float* average, int64_t count);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_OPTIMIZER_STEP_H_
