#include "embedding_ps/optimizer/sparse_optimizer.h"

#include "common/base/status_macros.h"
#include "common/config/setting_rules.h"
#include "embedding_ps/optimizer/adadelta.h"
#include "embedding_ps/optimizer/adagrad.h"
#include "embedding_ps/optimizer/adam.h"
#include "embedding_ps/optimizer/adamw.h"
#include "embedding_ps/optimizer/amsgrad.h"
#include "embedding_ps/optimizer/decayed_adagrad.h"
#include "embedding_ps/optimizer/ftml.h"
#include "embedding_ps/optimizer/ftrl.h"
#include "embedding_ps/optimizer/momentum.h"
#include "embedding_ps/optimizer/nesterov.h"
#include "embedding_ps/optimizer/rmsprop.h"
#include "embedding_ps/optimizer/rowwise_adagrad.h"
#include "embedding_ps/optimizer/sgd.h"
#include "embedding_ps/optimizer/sgd_l1.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<const SparseOptimizer>> NewSparseOptimizer(
    const SparseOptimizerConfig& config) {
  RETURN_IF_ERROR(CheckConfig(config, ""));
  // The switch has no default, so that the compiler reports a kind without a case.
  switch (config.kind_case()) {
    case SparseOptimizerConfig::kSgd:
      return NewSgd(config.sgd());
    case SparseOptimizerConfig::kAdagrad:
      return NewAdagrad(config.adagrad());
    case SparseOptimizerConfig::kRowwiseAdagrad:
      return NewRowwiseAdagrad(config.rowwise_adagrad());
    case SparseOptimizerConfig::kAdam:
      return NewAdam(config.adam());
    case SparseOptimizerConfig::kMomentum:
      return NewMomentum(config.momentum());
    case SparseOptimizerConfig::kNesterov:
      return NewNesterov(config.nesterov());
    case SparseOptimizerConfig::kSgdL1:
      return NewSgdL1(config.sgd_l1());
    case SparseOptimizerConfig::kDecayedAdagrad:
      return NewDecayedAdagrad(config.decayed_adagrad());
    case SparseOptimizerConfig::kRmsprop:
      return NewRmsprop(config.rmsprop());
    case SparseOptimizerConfig::kAdadelta:
      return NewAdadelta(config.adadelta());
    case SparseOptimizerConfig::kAmsgrad:
      return NewAmsgrad(config.amsgrad());
    case SparseOptimizerConfig::kAdamw:
      return NewAdamw(config.adamw());
    case SparseOptimizerConfig::kFtrl:
      return NewFtrl(config.ftrl());
    case SparseOptimizerConfig::kFtml:
      return NewFtml(config.ftml());
    case SparseOptimizerConfig::KIND_NOT_SET:
      return NewAdagrad(OptimizerConfig::Adagrad::default_instance());
  }
  return absl::InvalidArgumentError("kind: unknown");
}

}  // namespace satrap
