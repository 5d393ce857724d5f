// AMSGrad (Reddi, Kale and Kumar 2018), but each row has its own step count t, as in adam.h:
//   t += 1; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; x = max(x, v)
//   w -= lr (m / (1 - b1^t)) / (sqrt(x / (1 - b2^t)) + epsilon)
// The bias is corrected after the maximum is taken, as in PyTorch. Keras corrects it before, and
// the paper does not correct it.
//
// State: m [dim], v [dim], x [dim], t [1], all starting at 0.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_AMSGRAD_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_AMSGRAD_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewAmsgrad(const OptimizerConfig::AmsGrad& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_AMSGRAD_H_
