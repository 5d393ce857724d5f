// a = decay a + g^2; w -= lr g / (sqrt(a) + epsilon), element by element. This is Adagrad whose
// effective rate does not fall to 0. a decays only in steps that update the row.
//
// State: a, [dim], which starts at initial_accumulator.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_DECAYED_ADAGRAD_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_DECAYED_ADAGRAD_H_

#include <memory>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/table.pb.h"

namespace satrap {

// REQUIRES: constants in range, as NewSparseOptimizer checks
std::unique_ptr<const SparseOptimizer> NewDecayedAdagrad(
    const SparseOptimizerConfig::DecayedAdagrad& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_DECAYED_ADAGRAD_H_
