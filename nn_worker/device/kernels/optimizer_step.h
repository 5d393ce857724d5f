// One step of a dense optimizer over a flat buffer, in one launch. The formulas are those of
// nn_worker/backend/backend.h, with g = gradient * scale + l2 * w.
//
// What changes from step to step is read from the network's control when the kernel runs, so that a
// captured launch can be repeated, and so that the device decides whether the step applies. Each
// value is updated by one thread, so the bits do not depend on the launch.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_OPTIMIZER_STEP_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_OPTIMIZER_STEP_H_

#include <cstdint>

#include "nn_worker/backend/step_control.h"
#include "nn_worker/device/stream.h"

namespace satrap {

// What a step of any of them reads. `control` is in device memory.
struct OptimizerStep {
  const StepControl* control;
  float l2;
};

struct AdamConstants {
  float beta1, beta2, epsilon;
};

// The arrays are in device memory and have `count` values. The control decides whether they change.

// w -= lr g.
void SgdStep(Stream* stream, const OptimizerStep& step, const float* gradient, float* w,
             int64_t count);
// a += g^2; w -= lr g / (sqrt(a) + epsilon).
void AdagradStep(Stream* stream, const OptimizerStep& step, float epsilon, const float* gradient,
                 float* w, float* a, int64_t count);
// Kingma and Ba (2015), algorithm 1.
void AdamStep(Stream* stream, const OptimizerStep& step, const AdamConstants& constants,
              const float* gradient, float* w, float* m, float* v, int64_t count);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_OPTIMIZER_STEP_H_
