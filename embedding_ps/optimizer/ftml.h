// FTML (Zheng and Kwok 2017, Algorithm 1), element by element, with the row's own step count t:
//   v = b2 v + (1 - b2) g^2; d_t = (1 - b1^t) / lr (sqrt(v / (1 - b2^t)) + epsilon)
//   z = b1 z + (1 - b1) g - (d_t - b1 d_(t-1)) w; w = -z / d_t
//
// z and d need not be kept. Before each step but the first, z = -d_(t-1) w; before the first step,
// z and d are 0. In both cases the last line becomes w -= (1 - b1) g / d_t. In this form a step
// starts from the current value of w, so a row's initial values count, and so does clamping. A step
// from a stored z would ignore both.
//
// State: v [dim], t [1], both starting at 0.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_FTML_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_FTML_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewFtml(const OptimizerConfig::Ftml& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_FTML_H_
