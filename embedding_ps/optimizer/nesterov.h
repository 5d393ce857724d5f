// Nesterov's accelerated gradient, element by element, in the form whose gradient is taken at w
// (Sutskever, Martens, Dahl and Hinton 2013, with w the point looked ahead to):
//   n = mu m - lr g; w += (1 + mu) n - mu m; m = n
//
// State: m, [dim], 0.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_NESTEROV_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_NESTEROV_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewNesterov(const OptimizerConfig::Nesterov& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_NESTEROV_H_
