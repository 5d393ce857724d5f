#include "nn_worker/metrics/regression_errors.h"

#include <cmath>
#include <limits>

#include "common/base/status_macros.h"

namespace satrap {

void RegressionErrors::Add(const ScoredSamples& samples) {
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    if (!samples.counts(i)) continue;
    const double weight = samples.weight(i);
    const double error = static_cast<double>(samples.scores[i]) - samples.labels[i];
    weight_.Add(weight);
    absolute_.Add(weight * std::abs(error));
    squared_.Add(weight * error * error);
  }
}

absl::Status RegressionErrors::Merge(Collective* collective) {
  double sums[] = {weight_.value(), absolute_.value(), squared_.value()};
  RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(sums)));
  weight_ = absolute_ = squared_ = CompensatedSum();
  weight_.Add(sums[0]);
  absolute_.Add(sums[1]);
  squared_.Add(sums[2]);
  return absl::OkStatus();
}

void RegressionErrors::Finish(MetricValues* values) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double weight = weight_.value();
  const double mse = weight > 0 ? squared_.value() / weight : nan;
  values->set_mae(weight > 0 ? absolute_.value() / weight : nan);
  values->set_mse(mse);
  values->set_rmse(std::sqrt(mse));
}

}  // namespace satrap
