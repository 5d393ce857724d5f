#include "nn_worker/metrics/class_log_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {

void ClassLogLoss::Add(const ScoredSamples& samples) {
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    if (!samples.counts(i)) continue;
    const absl::Span<const float> logits =
        samples.scores.subspan(i * samples.outputs, samples.outputs);
    const size_t label = static_cast<size_t>(samples.labels[i]);
    CHECK(label < logits.size()) << label;
    // The largest logit is subtracted, so that no exponential overflows.
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - largest);
    const double weight = samples.weight(i);
    weight_.Add(weight);
    loss_.Add(weight * (std::log(sum) + largest - logits[label]));
  }
}

absl::Status ClassLogLoss::Merge(Collective* collective) {
  double sums[] = {weight_.value(), loss_.value()};
  RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(sums)));
  weight_ = loss_ = CompensatedSum();
  weight_.Add(sums[0]);
  loss_.Add(sums[1]);
  return absl::OkStatus();
}

void ClassLogLoss::Finish(MetricValues* values) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  values->set_logloss(weight_.value() > 0 ? loss_.value() / weight_.value() : nan);
}

}  // namespace satrap
