// Test support: the optimizers of ReferenceBackend (StepOperations::OptimizerStep), value by value
// in double, and rules for comparing other backends with them.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_OPTIMIZER_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_OPTIMIZER_H_

#include <vector>

#include "absl/types/span.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/operation/optimizer_rule.h"
#include "nn_worker/operation/step_control.h"

namespace satrap::reference {

// REQUIRES: states.size() == NumStates(rule)
void OptimizerStep(const StepControl& control, const OptimizerRule& rule, const Tensor& gradient,
                   const Tensor& w, absl::Span<const Tensor> states);

// At least one rule of every kind, and of every variant of a kind. Some rules use all the settings
// that are common to all kinds.
std::vector<OptimizerRule> RulesOfEveryKind();

}  // namespace satrap::reference

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_OPTIMIZER_H_
