// AdamW (Loshchilov and Hutter 2019): Adam (adam.h) plus a decay of the weights that does not enter
// the moments:
//   w -= lr (m^ / (sqrt(v^) + epsilon) + weight_decay w), with w from before the step
// where m^ and v^ are the corrected moments. A row decays only when it is updated.
//
// State: m [dim], v [dim], t [1], all starting at 0.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_ADAMW_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_ADAMW_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewAdamw(const OptimizerConfig::AdamW& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_ADAMW_H_
