#include "nn_worker/report/rank_metrics.h"

#include <vector>

namespace satrap {

namespace {

constexpr char kAbandoned[] = "satrap_cuts_abandoned_total";
constexpr char kAbandonedHelp[] =
    "Cuts that were abandoned: the copies of updated rows reached checkpoint.copy_bytes, or a file "
    "could not be written";

// The upper bounds of the buckets, in seconds: from 1 ms to 17 minutes, each twice the one before.
std::vector<double> WritingBounds() {
  std::vector<double> bounds;
  for (double bound = .001; bound < 1100; bound *= 2) bounds.push_back(bound);
  return bounds;
}

}  // namespace

RankMetrics::RankMetrics(MetricsRegistry* registry, const Executor* clock, RankObserver* next)
    : clock_(clock),
      next_(next),
      steps_(registry->AddCounter("satrap_train_steps_total", "Global steps that counted")),
      samples_(
          registry->AddCounter("satrap_train_samples_total", "Samples trained, over all ranks")),
      skipped_steps_(registry->AddCounter("satrap_train_skipped_steps_total",
                                          "Steps whose gradients were not finite")),
      large_gradient_steps_(
          registry->AddCounter("satrap_train_large_gradient_steps_total",
                               "Finite steps with a gradient beyond 1e15, without the loss scale")),
      clipped_steps_(registry->AddCounter("satrap_train_clipped_steps_total",
                                          "Steps whose gradients were above gradient_clip_norm")),
      gradient_norm_(registry->AddGauge("satrap_train_gradient_norm",
                                        "Norm of all gradients of the last step before they were "
                                        "clipped; 0 without gradient_clip_norm")),
      staleness_(registry->AddHistogram("satrap_staleness_parts",
                                        "Pushes of this rank that a lookup may miss",
                                        {0, 1, 2, 3, 4, 6, 8, 16})),
      gradient_values_(registry->AddCounter("satrap_gradient_values_total",
                                            "Values of embedding gradients sent by this rank")),
      saturated_values_(registry->AddCounter(
          "satrap_saturated_values_total",
          "Values of satrap_gradient_values_total that were too large for an F16 on the wire")),
      underflowed_values_(registry->AddCounter(
          "satrap_underflowed_values_total",
          "Values of satrap_gradient_values_total that were not 0 but became 0 as an F16 on the "
          "wire")),
      loss_(registry->AddGauge("satrap_train_loss", "Mean loss of the last step")),
      loss_scale_(registry->AddGauge("satrap_loss_scale", "Loss scale of the next step; 0: none")),
      learning_rate_factor_(registry->AddGauge("satrap_learning_rate_factor",
                                               "Product of all reductions of the learning rates on "
                                               "a plateau, as of the last validation; 0: no "
                                               "validation yet, or no reduce_on_plateau")),
      valid_auc_(registry->AddGauge("satrap_valid_auc", "AUC of the last validation")),
      cuts_begun_(registry->AddCounter("satrap_cuts_begun_total", "Cuts that were begun")),
      cuts_committed_(
          registry->AddCounter("satrap_cuts_committed_total", "Cuts that were committed")),
      cuts_abandoned_copy_limit_(
          registry->AddCounter(kAbandoned, kAbandonedHelp, {{"cause", "copy_limit"}})),
      cuts_abandoned_write_(registry->AddCounter(kAbandoned, kAbandonedHelp, {{"cause", "write"}})),
      cut_bytes_(registry->AddCounter("satrap_cut_bytes_total", "Bytes of committed cuts")),
      cut_copied_bytes_(
          registry->AddCounter("satrap_cut_copied_bytes_total",
                               "Bytes of rows that were copied before they were updated")),
      cut_pause_seconds_(registry->AddHistogram(
          "satrap_cut_pause_seconds", "From the decision for a cut until training continues",
          LatencyBounds())),
      cut_writing_seconds_(registry->AddHistogram(
          "satrap_cut_writing_seconds", "From the mark of a cut to its end", WritingBounds())),
      ledger_pieces_(registry->AddGauge("satrap_ledger_pieces",
                                        "Stretches of trained records that come after an "
                                        "untrained record of their split, at the last cut")),
      cut_age_seconds_(registry->AddGauge(
          "satrap_cut_age_seconds", "Since the last cut was committed, or this process began")),
      last_cut_us_(clock->NowUs()) {}

void RankMetrics::OnPhase(absl::string_view phase) { next_->OnPhase(phase); }

void RankMetrics::OnStep(const StepEvent& event) {
  steps_->Increment();
  samples_->Increment(static_cast<double>(event.samples));
  if (event.finite) {
    loss_->Set(event.loss / event.weight);
  } else {
    skipped_steps_->Increment();
  }
  if (event.large) large_gradient_steps_->Increment();
  loss_scale_->Set(event.loss_scale);
  gradient_values_->Increment(static_cast<double>(event.gradient_values));
  saturated_values_->Increment(static_cast<double>(event.losses.saturated));
  underflowed_values_->Increment(static_cast<double>(event.losses.underflowed));
  if (event.had_part) staleness_->Observe(event.staleness);
  next_->OnStep(event);
}

void RankMetrics::OnGradientNorm(double norm, float clip_factor) {
  gradient_norm_->Set(norm);
  if (clip_factor < 1) clipped_steps_->Increment();
  next_->OnGradientNorm(norm, clip_factor);
}

void RankMetrics::OnCutBegun() {
  cuts_begun_->Increment();
  next_->OnCutBegun();
}

void RankMetrics::OnCutPause(double seconds) {
  cut_pause_seconds_->Observe(seconds);
  next_->OnCutPause(seconds);
}

void RankMetrics::OnCutEnded(const CutOutcome& outcome) {
  cut_writing_seconds_->Observe(outcome.seconds);
  cut_copied_bytes_->Increment(static_cast<double>(outcome.copied_bytes));
  ledger_pieces_->Set(static_cast<double>(outcome.ledger_pieces));
  if (outcome.committed) {
    cuts_committed_->Increment();
    cut_bytes_->Increment(static_cast<double>(outcome.bytes));
    last_cut_us_ = clock_->NowUs();
  } else {
    (outcome.copy_limit ? cuts_abandoned_copy_limit_ : cuts_abandoned_write_)->Increment();
  }
  next_->OnCutEnded(outcome);
}

void RankMetrics::UpdateAges() {
  cut_age_seconds_->Set(static_cast<double>(clock_->NowUs() - last_cut_us_) * 1e-6);
}

void RankMetrics::OnEvaluation(const EvaluationEvent& event) {
  if (event.stream == VALID_STREAM && event.values.has_auc()) valid_auc_->Set(event.values.auc());
  if (event.learning_rate_factor.has_value()) {
    learning_rate_factor_->Set(*event.learning_rate_factor);
  }
  next_->OnEvaluation(event);
}

}  // namespace satrap
