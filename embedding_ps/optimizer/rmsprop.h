// RMSProp (Tieleman and Hinton 2012), element by element:
//   a = rho a + (1 - rho) g^2
//   s = lr g / (sqrt(a) + epsilon), or lr g / sqrt(a + epsilon) with epsilon_in_root; w -= s
// With `centred`, c = rho c + (1 - rho) g, and max(a - c^2, 0) replaces a in s (Graves 2013). With
// momentum > 0, m = momentum m + s; w -= m.
//
// State: a [dim], then c [dim] if centred, then m [dim] if momentum > 0; all start at 0.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_RMSPROP_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_RMSPROP_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewRmsprop(const OptimizerConfig::RmsProp& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_RMSPROP_H_
