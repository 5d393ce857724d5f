// One step of a dense optimizer over a flat buffer, in one launch. The formulas are those of
// nn_worker/backend/backend.h, with g = gradient * scale + l2 * w.
//
// What changes from step to step lies in device memory, so that a captured launch can be repeated, and
// so that the flag can be computed by the device. Each value is updated by one thread, so the bits do
// not depend on the launch.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_OPTIMIZER_STEP_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_OPTIMIZER_STEP_H_

#include <cstdint>

#include "nn_worker/device/stream.h"

namespace satrap {

struct StepScalars {
  uint32_t apply;  // 0: the step changes nothing, whatever the gradient holds
  float learning_rate;
  float scale;  // 1 / the step's normalizer
  float l2;
  float correction1;  // 1 - beta1^t, of Adam
  float correction2;  // 1 - beta2^t
};

struct AdamConstants {
  float beta1, beta2, epsilon;
};

// `scalars` is in device memory. The arrays have `count` values and are aligned to 16.

// w -= lr g.
void SgdStep(Stream* stream, const StepScalars* scalars, const float* gradient, float* w,
             int64_t count);
// a += g^2; w -= lr g / (sqrt(a) + epsilon).
void AdagradStep(Stream* stream, const StepScalars* scalars, float epsilon, const float* gradient,
                 float* w, float* a, int64_t count);
// Kingma and Ba (2015), algorithm 1.
void AdamStep(Stream* stream, const StepScalars* scalars, const AdamConstants& constants,
              const float* gradient, float* w, float* m, float* v, int64_t count);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_OPTIMIZER_STEP_H_
