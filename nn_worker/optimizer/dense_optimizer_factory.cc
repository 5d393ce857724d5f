#include "nn_worker/optimizer/dense_optimizer_factory.h"

#include "common/base/status_macros.h"
#include "common/config/learning_rate_schedule.h"
#include "common/config/ranges.h"
#include "nn_worker/optimizer/adagrad.h"
#include "nn_worker/optimizer/adam.h"
#include "nn_worker/optimizer/sgd.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<const DenseOptimizer>> NewDenseOptimizer(
    const DenseOptimizerConfig& config) {
  Problems problems;
  CheckDenseOptimizer(config, "dense_optimizer.", &problems);
  RETURN_IF_ERROR(problems.First());
  switch (config.kind_case()) {
    case DenseOptimizerConfig::kSgd:
      return NewSgd();
    case DenseOptimizerConfig::kAdagrad:
      return NewAdagrad(config.adagrad());
    case DenseOptimizerConfig::kAdam:
    case DenseOptimizerConfig::KIND_NOT_SET:
      return NewAdam(config.adam());
  }
  return absl::InvalidArgumentError("dense_optimizer: unknown kind");
}

StepPlan PlanOf(const DenseOptimizerConfig& config, const DenseOptimizer& optimizer,
                const DenseStep& step) {
  const double rate =
      config.learning_rate() * LearningRateFactor(config.learning_rate_schedule(), step.step);
  const BiasCorrections corrections = optimizer.corrections(step.step);
  StepPlan plan;
  plan.step = static_cast<uint64_t>(step.step);
  plan.learning_rate = static_cast<float>(rate * step.learning_rate_factor);
  plan.correction1 = corrections.first;
  plan.correction2 = corrections.second;
  plan.global_batch_size = step.global_batch_size;
  return plan;
}

}  // namespace satrap
