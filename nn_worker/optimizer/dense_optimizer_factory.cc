#include "nn_worker/optimizer/dense_optimizer_factory.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "nn_worker/optimizer/adagrad.h"
#include "nn_worker/optimizer/adam.h"
#include "nn_worker/optimizer/sgd.h"

namespace satrap {
namespace {

absl::Status CheckNotNegative(absl::string_view field, double value) {
  if (value >= 0 && std::isfinite(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("dense_optimizer.", field, " must be finite and at least 0, got ", value));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const DenseOptimizer>> NewDenseOptimizer(
    const DenseOptimizerConfig& config) {
  RETURN_IF_ERROR(CheckNotNegative("learning_rate", config.learning_rate()));
  RETURN_IF_ERROR(CheckNotNegative("l2", config.l2()));
  RETURN_IF_ERROR(CheckNotNegative("warmup_steps", static_cast<double>(config.warmup_steps())));
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
  CHECK(step.global_weight > 0) << step.global_weight;
  double rate = config.learning_rate();
  if (config.warmup_steps() > 0) {
    rate *= std::min(1.0, static_cast<double>(step.step + 1) / config.warmup_steps());
  }
  UpdateCoefficients coefficients;
  coefficients.learning_rate = static_cast<float>(rate * step.learning_rate_factor);
  coefficients.scale = static_cast<float>(1.0 / step.global_weight);
  coefficients.l2 = config.l2();
  return coefficients;
}

}  // namespace satrap
