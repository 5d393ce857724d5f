#include "nn_worker/backend/cpu/cpu_step.h"

#include <algorithm>
#include <cmath>

#include "nn_worker/operation/step_normalizer.h"

namespace satrap::cpu {

void Decide(const StepPlan& plan, const float* sums, StepControl* control) {
  const bool counts = sums[kStepWeight] > 0;
  const bool finite = sums[kStepNotFinite] == 0;
  StepControl& step = *control;
  step.step = plan.step;
  step.apply = counts && finite ? 1 : 0;
  step.learning_rate = plan.learning_rate;
  step.correction1 = plan.correction1;
  step.correction2 = plan.correction2;
  step.scale = 0;
  if (!counts) return;  // nothing was learned of the gradient's scale either
  const double normalizer =
      StepNormalizer(sums[kStepWeight], static_cast<uint64_t>(std::llround(sums[kStepSamples])),
                     plan.global_batch_size);
  step.scale = static_cast<float>(1.0 / (normalizer * step.gradient_scale));
  if (!finite) ++step.overflows;
  const GradientScaleRule& rule = plan.gradient_scale;
  if (rule.growth_steps == 0) return;
  if (!finite) {
    step.gradient_scale = std::max(rule.least, step.gradient_scale * rule.backoff);
    step.clean_steps = 0;
  } else if (++step.clean_steps == rule.growth_steps) {
    step.gradient_scale = std::min(rule.most, step.gradient_scale * rule.growth);
    step.clean_steps = 0;
  }
}

}  // namespace satrap::cpu
