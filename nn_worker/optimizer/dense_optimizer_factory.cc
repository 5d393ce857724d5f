#include "nn_worker/optimizer/dense_optimizer_factory.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"
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

UpdateCoefficients CoefficientsOf(const DenseOptimizerConfig& config, const DenseStep& step) {
  CHECK(step.normalizer > 0) << step.normalizer;
  double rate = config.learning_rate();
  if (config.warmup_steps() > 0) {
    rate *= std::min(1.0, static_cast<double>(step.step + 1) / config.warmup_steps());
  }
  UpdateCoefficients coefficients;
  coefficients.learning_rate = static_cast<float>(rate * step.learning_rate_factor);
  coefficients.scale = static_cast<float>(1.0 / step.normalizer);
  coefficients.l2 = config.l2();
  return coefficients;
}

}  // namespace satrap
