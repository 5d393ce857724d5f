// The scalars of a step, in memory of a backend. Backend::DecideStep writes them when the step's
// sums are complete; operations read them when they run, not when they are enqueued. So the device
// itself decides whether a step changes anything, and a recorded sequence of operations can be
// repeated.
//
// Kernels include this header, so it uses only the standard library's integers.

#ifndef SATRAP_NN_WORKER_OPERATION_STEP_CONTROL_H_
#define SATRAP_NN_WORKER_OPERATION_STEP_CONTROL_H_

#include <cstdint>

namespace satrap {

struct StepControl {
  uint64_t step = 0;         // of the job, from 0
  uint32_t apply = 0;        // 0: the step does not count or is not finite, and changes nothing
  float learning_rate = 0;   // with the schedule's factors
  float scale = 0;           // 1 / (the step's normalizer * gradient_scale it was computed with)
  float correction1 = 1;     // of Adam: 1 - beta1^t
  float correction2 = 1;     // 1 - beta2^t
  float gradient_scale = 1;  // losses multiply the next gradients by it; a power of 2
  uint32_t clean_steps = 0;  // finite steps since gradient_scale changed
  uint32_t overflows = 0;    // steps that counted and were not finite, since the network was made
};

// How DecideStep changes StepControl.gradient_scale. A step that is not finite multiplies the scale
// by `backoff`; growth_steps finite steps in a row multiply it by `growth`. The scale stays in
// [least, most]. These values are powers of 2, so that scaling is exact. If growth_steps is 0, the
// scale is constant.
struct GradientScaleRule {
  uint32_t growth_steps = 0;
  float growth = 2;
  float backoff = 0.5f;
  float least = 1;
  float most = 1;
};

// What the host knows about a step before the step's sums are complete.
struct StepPlan {
  uint64_t step = 0;
  float learning_rate = 0;
  float correction1 = 1;
  float correction2 = 1;
  int64_t global_batch_size = 1;
  GradientScaleRule gradient_scale;
};

// The factor of the old value in a running mean over the steps, after step `step` of the job. It is
// small in the first steps, so that the initial values are soon forgotten.
constexpr float AverageDecay(float decay, uint64_t step) {
  const float steps = static_cast<float>(step) + 1;
  const float early = (1 + steps) / (10 + steps);
  return early < decay ? early : decay;
}

// The sums over all ranks that DecideStep reads, in this order.
enum StepSum { kStepSamples, kStepWeight, kStepNotFinite, kNumStepSums };

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPERATION_STEP_CONTROL_H_
