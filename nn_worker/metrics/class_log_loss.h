// The log loss of a class: with logits z and class y, the weighted mean of
// log(sum over c of exp(z_c)) - z_y. Undefined (NaN) if the sum of the weights is 0.

#ifndef SATRAP_NN_WORKER_METRICS_CLASS_LOG_LOSS_H_
#define SATRAP_NN_WORKER_METRICS_CLASS_LOG_LOSS_H_

#include "nn_worker/metrics/log_loss.h"
#include "nn_worker/metrics/pass_metric.h"

namespace satrap {

class ClassLogLoss final : public PassMetric {
 public:
  // REQUIRES: the labels of samples that count are classes, that is, whole numbers in [0, outputs)
  void Add(const ScoredSamples& samples) override;
  absl::Status Merge(Collective* collective) override;
  void Finish(MetricValues* values) override;

 private:
  CompensatedSum weight_, loss_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_CLASS_LOG_LOSS_H_
