// a += |g|^2 / dim; w -= lr g / (sqrt(a) + epsilon): Adagrad with one accumulator per segment. The
// step uses the new a, as in FBGEMM.
//
// State: a, [1], which starts at initial_accumulator.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_ROWWISE_ADAGRAD_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_ROWWISE_ADAGRAD_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/table.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewRowwiseAdagrad(
    const SparseOptimizerConfig::RowwiseAdagrad& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_ROWWISE_ADAGRAD_H_
