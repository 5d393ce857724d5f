// The Prometheus metrics of a rank: steps, samples, steps that were not finite or were clipped,
// staleness, gradients that an F16 could not hold, the loss, the AUC of the last validation, and on
// rank 0 also the metrics of cuts. RankObserver states how its methods are called; UpdateAges may
// be called on any thread at any time.

#ifndef SATRAP_NN_WORKER_REPORT_RANK_METRICS_H_
#define SATRAP_NN_WORKER_REPORT_RANK_METRICS_H_

#include <atomic>
#include <cstdint>

#include "common/metrics/metrics.h"
#include "common/thread/executor.h"
#include "nn_worker/rank/rank_observer.h"

namespace satrap {

class RankMetrics final : public RankObserver {
 public:
  // Passes every event on to `next`. Nothing is owned.
  RankMetrics(MetricsRegistry* registry, const Executor* clock, RankObserver* next);

  void OnPhase(absl::string_view phase) override;
  void OnStep(const StepEvent& event) override;
  void OnGradientNorm(double norm, float clip_factor) override;
  void OnEvaluation(const EvaluationEvent& event) override;
  void OnCutBegun() override;
  void OnCutPause(double seconds) override;
  void OnCutEnded(const CutOutcome& outcome) override;

  // Sets the gauges that grow with time.
  void UpdateAges();

 private:
  const Executor* const clock_;
  RankObserver* const next_;
  prometheus::Counter* const steps_;
  prometheus::Counter* const samples_;
  prometheus::Counter* const skipped_steps_;
  prometheus::Counter* const large_gradient_steps_;
  prometheus::Counter* const clipped_steps_;
  prometheus::Gauge* const gradient_norm_;
  prometheus::Histogram* const staleness_;
  prometheus::Counter* const gradient_values_;
  prometheus::Counter* const saturated_values_;
  prometheus::Counter* const underflowed_values_;
  prometheus::Gauge* const loss_;
  prometheus::Gauge* const loss_scale_;
  prometheus::Gauge* const learning_rate_factor_;
  prometheus::Gauge* const valid_auc_;
  prometheus::Counter* const cuts_begun_;
  prometheus::Counter* const cuts_committed_;
  prometheus::Counter* const cuts_abandoned_copy_limit_;
  prometheus::Counter* const cuts_abandoned_write_;
  prometheus::Counter* const cut_bytes_;
  prometheus::Counter* const cut_copied_bytes_;
  prometheus::Histogram* const cut_pause_seconds_;
  prometheus::Histogram* const cut_writing_seconds_;
  prometheus::Gauge* const ledger_pieces_;
  prometheus::Gauge* const cut_age_seconds_;
  std::atomic<int64_t> last_cut_us_;  // when the last cut was committed, or the process began
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_RANK_METRICS_H_
