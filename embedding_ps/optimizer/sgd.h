// w -= lr g. No state.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_SGD_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_SGD_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewSgd(const OptimizerConfig::Sgd& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_SGD_H_
