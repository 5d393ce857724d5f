// The rule by which an optimizer's step changes its range of parameters, with the rule's constants.
// The formulas are those of StepOperations::OptimizerStep (step_operations.h).
//
// Kernels include this header, so it uses only the standard library's integers.

#ifndef SATRAP_NN_WORKER_OPERATION_OPTIMIZER_RULE_H_
#define SATRAP_NN_WORKER_OPERATION_OPTIMIZER_RULE_H_

#include <cstdint>

namespace satrap {

enum class OptimizerKind : int32_t {
  kSgd,
  kAdagrad,
  kAdam,
  kMomentumRateInside,
  kMomentumRateOutside,
  kNesterov,
  kRmsProp,
  kAdadelta,
  kAmsGrad,
  kFtrl,
  kFtml,
};

inline constexpr int kMaxOptimizerStates = 3;

struct OptimizerRule {
  OptimizerKind kind = OptimizerKind::kSgd;

  // Constants that every kind uses.
  float rate_factor = 1;
  float l2 = 0;
  float l1 = 0;
  float weight_decay = 0;

  // Constants that only some kinds use. A kind uses a constant if its formula contains this name.
  float epsilon = 0;
  float beta1 = 0;
  float beta2 = 0;
  float mu = 0;
  float dampening = 0;
  float rho = 0;
  float epsilon_in_root = 0;
  float beta = 0;
  float lambda1 = 0;
  float lambda2 = 0;
  bool centred = false;
};

// The number of state values for each value that the rule changes.
constexpr int NumStates(const OptimizerRule& rule) {
  switch (rule.kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kMomentumRateInside:
    case OptimizerKind::kMomentumRateOutside:
    case OptimizerKind::kNesterov:
    case OptimizerKind::kFtml:
      return 1;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdadelta:
    case OptimizerKind::kFtrl:
      return 2;
    case OptimizerKind::kAmsGrad:
      return 3;
    case OptimizerKind::kRmsProp:
      return 1 + (rule.centred ? 1 : 0) + (rule.mu > 0 ? 1 : 0);
  }
  return 0;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPERATION_OPTIMIZER_RULE_H_
