// SGD with the cumulative L1 penalty of Tsuruoka, Tsujii and Ananiadou 2009. Each step of the job
// makes u += lr l1, whether it holds the row or not. A step of the row then is
//   z = w - lr g
//   z > 0: w = max(0, z - (u + q));  z < 0: w = min(0, z + (u - q));  q += w - z
// where q is the penalty that the weight has paid so far. So a weight pays what it owes when it is
// touched, and a weight that owes more than it gains stays 0.
//
// The state is u + q and u - q: what a weight above and one below 0 owes and has not paid. u alone
// grows for as long as the run, and as an f32 it would stop growing after 2^24 steps; but what a
// weight owes to the side that it is on is at most one step's penalty, after any number of steps.
// The debt to the other side, and the debt of a weight held at 0, does grow. It is exact for some
// 2^23 steps and then stops: it only says that the weight stays at 0 for at least that much.
//
// Steps that a row missed are counted at the learning rate of the step that touches it again: exact
// while the rate is constant. In hybrid the second part of a step finds the step already counted
// (row_step.h).
//
// State: u + q [dim], u - q [dim], the last step [1] (row_step.h); all 0.

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
