// Nesterov's accelerated gradient, element by element, in the form that takes the gradient at w:
// here w is the look-ahead point of Sutskever, Martens, Dahl and Hinton 2013.
//   n = mu m - lr g; w += (1 + mu) n - mu m; m = n
//
// State: m, [dim], which starts at 0.

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
