// SGD with the cumulative L1 penalty of Tsuruoka, Tsujii and Ananiadou 2009. Each step of the job
// raises the total penalty, u += lr l1, even for rows that the step does not hold. A step that
// holds the row is
//   z = w - lr g
//   z > 0: w = max(0, z - (u + q));  z < 0: w = min(0, z + (u - q));  q += w - z
// where q is the penalty that the weight has paid so far. So a weight pays its debt when its row is
// stepped, and a weight whose debt exceeds its gain stays 0.
//
// The state is u + q and u - q: the unpaid debt of a weight above 0 and of a weight below 0. u
// itself would grow through the whole run, and as an f32 it would stop growing after 2^24 steps. Of
// the two debts of a weight, the one for the side of 0 on which the weight lies is at most one
// step's penalty, after any number of steps. The debt for the other side does grow, and so does the
// debt of a weight that is held at 0. Such a debt is exact for some 2^23 steps and then stops
// growing. From then on it is a lower bound of the true debt.
//
// Steps that a row missed are counted at the learning rate of the next step that holds the row.
// This is exact while the rate is constant. In hybrid mode, if two parts of a step hold the row,
// only the first one counts the step (row_step.h).
//
// State: u + q [dim], u - q [dim], the last step [1] (row_step.h); all start at 0.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_SGD_L1_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_SGD_L1_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/table.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewSgdL1(const SparseOptimizerConfig::SgdL1& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_SGD_L1_H_
