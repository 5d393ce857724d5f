#include "embedding_ps/optimizer/sparse_optimizer.h"

#include "common/base/status_macros.h"
#include "common/config/ranges.h"
#include "embedding_ps/optimizer/adagrad.h"
#include "embedding_ps/optimizer/adam.h"
#include "embedding_ps/optimizer/rowwise_adagrad.h"
#include "embedding_ps/optimizer/sgd.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<const SparseOptimizer>> NewSparseOptimizer(
    const SparseOptimizerConfig& config) {
  Problems problems;
  CheckSparseOptimizer(config, "", &problems);
  RETURN_IF_ERROR(problems.First());
  // No default, so that the compiler names a kind that is missing here.
  switch (config.kind_case()) {
    case SparseOptimizerConfig::kSgd:
      return NewSgd(config.sgd());
    case SparseOptimizerConfig::kAdagrad:
      return NewAdagrad(config.adagrad());
    case SparseOptimizerConfig::kRowwiseAdagrad:
      return NewRowwiseAdagrad(config.rowwise_adagrad());
    case SparseOptimizerConfig::kAdam:
      return NewAdam(config.adam());
    case SparseOptimizerConfig::KIND_NOT_SET:
      return NewAdagrad(SparseOptimizerConfig::Adagrad::default_instance());
  }
  return absl::InvalidArgumentError("kind: unknown");
}

}  // namespace satrap
