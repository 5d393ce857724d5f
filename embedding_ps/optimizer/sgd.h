// w -= lr g. No state.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_SGD_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_SGD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/table.pb.h"

namespace satrap {

// INVALID_ARGUMENT if a constant is out of range.
absl::StatusOr<std::unique_ptr<const SparseOptimizer>> NewSgd(
    const SparseOptimizerConfig::Sgd& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_SGD_H_
