// Computes what Backend::DecideStep writes to the control of a step when the step's sums are
// complete.
//
// Kernels include this header, so it uses only the standard library's integers.

#ifndef SATRAP_NN_WORKER_OPERATION_STEP_DECISION_H_
#define SATRAP_NN_WORKER_OPERATION_STEP_DECISION_H_

#include <cstdint>

#include "nn_worker/operation/step_control.h"
#include "nn_worker/operation/step_normalizer.h"

namespace satrap {

// Updates the scale with which the next gradients are computed. Call after a step that counts.
constexpr void MoveGradientScale(const GradientScaleRule& rule, bool finite, StepControl* control) {
  if (rule.growth_steps == 0) return;
  if (!finite) {
    const float less = control->gradient_scale * rule.backoff;
    control->gradient_scale = less > rule.least ? less : rule.least;
    control->clean_steps = 0;
  } else if (++control->clean_steps == rule.growth_steps) {
    const float more = control->gradient_scale * rule.growth;
    control->gradient_scale = more < rule.most ? more : rule.most;
    control->clean_steps = 0;
  }
}

// `sums`: [kNumStepSums], over all ranks. A step of weight 0 changes neither the gradient scale nor
// the counts of finite steps and overflows, because it gives no information about them.
constexpr void DecideStepBySums(const StepPlan& plan, const float* sums, StepControl* control) {
  const float weight = sums[kStepWeight];
  const bool counts = weight > 0, finite = sums[kStepNotFinite] == 0;
  control->step = plan.step;
  control->apply = counts && finite ? 1 : 0;
  control->learning_rate = plan.learning_rate;
  control->correction1 = plan.correction1;
  control->correction2 = plan.correction2;
  control->scale = 0;
  if (!counts) return;
  const double normalizer = StepNormalizer(weight, sums[kStepSamples], plan.global_batch_size);
  control->scale = static_cast<float>(1.0 / (normalizer * control->gradient_scale));
  if (!finite) ++control->overflows;
  MoveGradientScale(plan.gradient_scale, finite, control);
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPERATION_STEP_DECISION_H_
