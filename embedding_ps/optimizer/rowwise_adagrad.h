// a += |g|^2 / dim; w -= lr g / (sqrt(a) + epsilon): Adagrad with one accumulator a segment (the
// new a, as in FBGEMM).
//
// State: a, [1], beginning at initial_accumulator.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_ROWWISE_ADAGRAD_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_ROWWISE_ADAGRAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/table.pb.h"

namespace satrap {

// INVALID_ARGUMENT if a constant is out of range.
absl::StatusOr<std::unique_ptr<const SparseOptimizer>> NewRowwiseAdagrad(
    const SparseOptimizerConfig::RowwiseAdagrad& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_ROWWISE_ADAGRAD_H_
