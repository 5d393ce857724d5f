#include "nn_worker/device/kernels/decide_step.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/operation/step_decision.h"

namespace satrap {
namespace {

// One thread runs this, because it handles only a few numbers once per step. It works on a copy,
// which the compiler keeps in registers.
SATRAP_KERNEL void DecideStepKernel(StepPlan plan, const float* sums, StepControl* control) {
  StepControl step = *control;
  DecideStepBySums(plan, sums, &step);
  *control = step;
}

}  // namespace

void DecideStep(DeviceStream* stream, const StepPlan& plan, const float* sums,
                StepControl* control) {
  Launch<DecideStepKernel>(stream, {1}, {1}, 0, plan, sums, control);
}

}  // namespace satrap
