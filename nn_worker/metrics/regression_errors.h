// The errors of predicted numbers: with e = score - label and weights w,
//
//   MAE = sum w |e| / sum w     MSE = sum w e^2 / sum w     RMSE = sqrt(MSE)
//
// Undefined (NaN) without weight. The sums are compensated, so the results do not depend on how
// samples are divided among ranks, to within 1e-12.

#ifndef SATRAP_NN_WORKER_METRICS_REGRESSION_ERRORS_H_
#define SATRAP_NN_WORKER_METRICS_REGRESSION_ERRORS_H_

#include "nn_worker/metrics/log_loss.h"
#include "nn_worker/metrics/pass_metric.h"

namespace satrap {

class RegressionErrors final : public PassMetric {
 public:
  void Add(const ScoredSamples& samples) override;
  absl::Status Merge(Collective* collective) override;
  void Finish(MetricValues* values) override;

 private:
  CompensatedSum weight_, absolute_, squared_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_REGRESSION_ERRORS_H_
