// The Prometheus metrics of a rank: steps, samples, steps that were not finite, staleness,
// saturated gradients, the loss, and the AUC of the last validation. Called as RankObserver says.

#ifndef SATRAP_NN_WORKER_REPORT_RANK_METRICS_H_
#define SATRAP_NN_WORKER_REPORT_RANK_METRICS_H_

#include "common/metrics/metrics.h"
#include "nn_worker/rank/rank_observer.h"

namespace satrap {

class RankMetrics final : public RankObserver {
 public:
  // Passes every event on to `next`. Neither argument is owned.
  RankMetrics(MetricsRegistry* registry, RankObserver* next);

  void OnPhase(absl::string_view phase) override;
  void OnStep(const StepEvent& event) override;
  void OnEvaluation(const EvaluationEvent& event) override;

 private:
  RankObserver* const next_;
  prometheus::Counter* const steps_;
  prometheus::Counter* const samples_;
  prometheus::Counter* const skipped_steps_;
  prometheus::Histogram* const staleness_;
  prometheus::Counter* const saturated_values_;
  prometheus::Gauge* const loss_;
  prometheus::Gauge* const valid_auc_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_RANK_METRICS_H_
