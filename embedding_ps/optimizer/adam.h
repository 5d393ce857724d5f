// Adam (Kingma and Ba 2015, Algorithm 1), but each row has its own step count t:
//   t += 1; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2
//   w -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
// So, with semantics LAZY, a row that is created late gets the bias correction of its first steps,
// and a row's moments do not change while it is not updated.
//
// State: m [dim], v [dim], t [1], all starting at 0. t is a float, which is exact up to 2^24
// updates. By then both corrections are 1 for betas up to 1 - 1e-6. Beyond 2^24, t grows by 1 per
// update on average (CountOn, row_step.h).

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_ADAM_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_ADAM_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/optimizer.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewAdam(const OptimizerConfig::Adam& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_ADAM_H_
