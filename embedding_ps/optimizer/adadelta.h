// Adadelta (Zeiler 2012, Algorithm 1), element by element, times a learning rate:
//   a = rho a + (1 - rho) g^2; d = g sqrt(u + epsilon) / sqrt(a + epsilon)
//   u = rho u + (1 - rho) d^2; w -= lr d
//
// State: a [dim], u [dim], both starting at 0.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_ADADELTA_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_ADADELTA_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewAdadelta(const OptimizerConfig::Adadelta& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_ADADELTA_H_
