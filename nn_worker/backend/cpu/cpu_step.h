// How CpuBackend decides a step (StepOperations::DecideStep).

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_STEP_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_STEP_H_

#include "nn_worker/operation/step_control.h"

namespace satrap::cpu {

// sums: [kNumStepSums]
void Decide(const StepPlan& plan, const float* sums, StepControl* control);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_STEP_H_
