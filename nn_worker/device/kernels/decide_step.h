// Decides a step from its sums over all ranks (Backend::DecideStep).

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_DECIDE_STEP_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_DECIDE_STEP_H_

#include "nn_worker/device/device_stream.h"
#include "nn_worker/operation/step_control.h"

namespace satrap {

// `sums` ([kNumStepSums]) and `control` are in device memory.
void DecideStep(DeviceStream* stream, const StepPlan& plan, const float* sums,
                StepControl* control);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_DECIDE_STEP_H_
