// Binary cross entropy of logits, its gradient, and the sums that the loss is made of.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_BCE_WITH_LOGITS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_BCE_WITH_LOGITS_H_

#include <cstdint>

#include "nn_worker/backend/step_control.h"
#include "nn_worker/device/stream.h"

namespace satrap {

// A column of values in device memory: value i at data + i * stride. Null data means 1 for each
// sample.
struct Column {
  const float* data;
  int64_t stride;
};

struct BceArgs {
  const StepControl* control;
  int64_t samples;
  Column logits;
  Column labels;
  Column weights;  // may be null
  Column mask;     // may be null
  float* dlogits;
  int64_t dlogits_stride;
};

// The samples of one block.
inline constexpr int64_t kBceSamples = 2048;

// The values of `partials` that BceWithLogits needs.
inline int64_t BcePartials(int64_t samples) {
  return 2 * ((samples + kBceSamples - 1) / kBceSamples);
}

// l = max(z, 0) - z y + log(1 + exp(-|z|)); dlogits = weight * mask * (sigmoid(z) - y) * the
// control's gradient_scale, the gradient of a sum. A masked sample adds exactly 0, whatever its
// label. Sums are not scaled and in double; their bits depend on the number of samples alone.
//   partials: [BcePartials(samples)], overwritten   sums: [2] = sum weight l, sum weight
void BceWithLogits(Stream* stream, const BceArgs& args, double* partials, double* sums);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_BCE_WITH_LOGITS_H_
