// The loops of CpuBackend's optimizers (StepOperations), like those of cpu_kernels.h.
//
// Thread-safe: a loop writes only the given ranges.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_OPTIMIZER_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_OPTIMIZER_H_

#include <array>
#include <cstdint>

#include "nn_worker/operation/optimizer_rule.h"
#include "nn_worker/operation/step_control.h"

namespace satrap::cpu {

// Arrays of `count` values each. REQUIRES: the control applies
struct OptimizerArrays {
  const float* gradient = nullptr;
  float* w = nullptr;
  std::array<float*, kMaxOptimizerStates> states = {};  // the first NumStates(rule)
  int64_t count = 0;
};
void OptimizerRange(const StepControl& step, const OptimizerRule& rule,
                    const OptimizerArrays& arrays);

// REQUIRES: the control applies
void AverageRange(const StepControl& step, float decay, const float* w, float* average,
                  int64_t count);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_OPTIMIZER_H_
