#include "nn_worker/device/kernels/decide_step.h"

#include "nn_worker/device/kernel.h"

namespace satrap {
namespace {

// StepNormalizer of nn_worker/operation/step_normalizer.h, whose header is not for kernels. Conformance
// compares them.
SATRAP_DEVICE float NormalizerOf(float weight, float samples, int64_t global_batch_size) {
  const double missing = static_cast<double>(global_batch_size) / samples;
  return static_cast<float>(weight * (missing > 1 ? missing : 1));
}

SATRAP_DEVICE void MoveGradientScale(const GradientScaleRule& rule, bool finite,
                                     StepControl* control) {
  if (rule.growth_steps == 0) return;
  if (!finite) {
    control->gradient_scale = Max(rule.least, control->gradient_scale * rule.backoff);
    control->clean_steps = 0;
  } else if (++control->clean_steps == rule.growth_steps) {
    control->gradient_scale = Min(rule.most, control->gradient_scale * rule.growth);
    control->clean_steps = 0;
  }
}

// One thread: a few numbers, once a step.
SATRAP_KERNEL void DecideStepKernel(StepPlan plan, const float* sums, StepControl* control) {
  const float weight = sums[kStepWeight];
  const bool counts = weight > 0, finite = sums[kStepNotFinite] == 0;
  StepControl step = *control;
  step.step = plan.step;
  step.apply = counts && finite ? 1 : 0;
  step.learning_rate = plan.learning_rate;
  step.correction1 = plan.correction1;
  step.correction2 = plan.correction2;
  step.scale = 0;
  if (counts) {
    const float normalizer = NormalizerOf(weight, sums[kStepSamples], plan.global_batch_size);
    step.scale = static_cast<float>(1.0 / (static_cast<double>(normalizer) * step.gradient_scale));
    if (!finite) ++step.overflows;
    MoveGradientScale(plan.gradient_scale, finite, &step);
  }
  *control = step;
}

}  // namespace

void DecideStep(DeviceStream* stream, const StepPlan& plan, const float* sums,
                StepControl* control) {
  Launch<DecideStepKernel>(stream, {1}, {1}, 0, plan, sums, control);
}

}  // namespace satrap
