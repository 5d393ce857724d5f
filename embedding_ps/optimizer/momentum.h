// SGD with momentum, element by element, in two forms:
//   RATE_INSIDE   m = mu m - lr g; w += m                       (TensorFlow, HugeCTR)
//   RATE_OUTSIDE  m = mu m + (1 - dampening) g; w -= lr m       (PyTorch)
// With a constant rate and no dampening the two forms are equal up to rounding. When the rate
// falls, the steps that m holds keep their length in the first form but get shorter in the second.
// PyTorch does not dampen a parameter's first step; here every step is dampened.
//
// State: m, [dim], which starts at 0.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_MOMENTUM_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_MOMENTUM_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewMomentum(const OptimizerConfig::Momentum& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_MOMENTUM_H_
