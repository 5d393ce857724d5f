// FTRL-Proximal (McMahan et al. 2013, Algorithm 1), element by element, with alpha = lr:
//   s = (sqrt(n + g^2) - sqrt(n)) / alpha; z += g - s w; n += g^2
//   w = 0 if |z| <= lambda1, else -(z - sgn(z) lambda1) / ((beta + sqrt(n)) / alpha + lambda2)
//
// A weight that is not 0 determines its z: -w ((beta + sqrt(n)) / alpha + lambda2) - sgn(w)
// lambda1. So z is computed from w if w is not 0, and read from the state if w is 0. Therefore a
// row's first step starts from its random initial values, whereas a z of 0 would discard them.
// Also, w does not jump when the learning rate changes. With a constant rate this is Algorithm 1.
//
// State: z [dim], which starts at 0 and is read only if w is 0; n [dim], which starts at
// initial_accumulator.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_FTRL_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_FTRL_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: all constants are in range, which NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewFtrl(const OptimizerConfig::Ftrl& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_FTRL_H_
