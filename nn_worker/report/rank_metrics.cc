#include "nn_worker/report/rank_metrics.h"

namespace satrap {

RankMetrics::RankMetrics(MetricsRegistry* registry, RankObserver* next)
    : next_(next),
      steps_(registry->AddCounter("satrap_train_steps_total", "Global steps that counted")),
      samples_(
          registry->AddCounter("satrap_train_samples_total", "Samples trained, over all ranks")),
      skipped_steps_(registry->AddCounter("satrap_train_skipped_steps_total",
                                          "Steps whose gradients were not finite")),
      staleness_(registry->AddHistogram("satrap_staleness_parts",
                                        "Pushes of this rank that a lookup may miss",
                                        {0, 1, 2, 3, 4, 6, 8, 16})),
      saturated_values_(
          registry->AddCounter("satrap_saturated_values_total",
                               "Values of gradients that were too large for an F16 on the wire")),
      loss_(registry->AddGauge("satrap_train_loss", "Mean loss of the last step")),
      valid_auc_(registry->AddGauge("satrap_valid_auc", "AUC of the last validation")) {}

void RankMetrics::OnPhase(absl::string_view phase) { next_->OnPhase(phase); }

void RankMetrics::OnStep(const StepEvent& event) {
  steps_->Increment();
  samples_->Increment(static_cast<double>(event.samples));
  if (event.finite) {
    loss_->Set(event.loss / event.weight);
  } else {
    skipped_steps_->Increment();
  }
  saturated_values_->Increment(static_cast<double>(event.saturated_values));
  if (event.had_part) staleness_->Observe(event.staleness);
  next_->OnStep(event);
}

void RankMetrics::OnEvaluation(const EvaluationEvent& event) {
  if (event.stream == VALID_STREAM) valid_auc_->Set(event.values.auc());
  next_->OnEvaluation(event);
}

}  // namespace satrap
