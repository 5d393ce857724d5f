// a += g^2; w -= lr g / (sqrt(a) + epsilon), element by element (Duchi, Hazan, Singer 2011,
// diagonal form). The step uses the new a, as in PyTorch.
//
// State: a, [dim], which starts at initial_accumulator.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_ADAGRAD_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_ADAGRAD_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewAdagrad(const OptimizerConfig::Adagrad& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_ADAGRAD_H_
