#include "nn_worker/rank/run_record.h"

#include "nn_worker/rank/gradient_norms.h"

namespace satrap {

RunRecord::RunRecord(const EvaluationConfig& evaluation, const RunPosition& position,
                     const Traits& traits)
    : traits_(traits),
      skipped_in_a_row_(position.skipped_steps_in_a_row()),
      labels_(position.label_windows()),
      best_(evaluation,
            position.has_best() ? absl::make_optional(position.best().values()) : absl::nullopt,
            static_cast<int>(position.validations_without_best())),
      trained_us_(static_cast<int64_t>(position.train_seconds() * 1e6)) {
  if (position.has_validated_step()) validated_step_ = position.validated_step();
  if (position.has_best()) {
    best_validation_ = position.best();
    *result_.mutable_valid() = position.best().values();
  }
  result_.set_steps(position.step());
  result_.set_samples(position.samples());
  result_.set_skipped_steps(position.skipped_steps());
  if (position.overflowed_steps() > 0) {
    result_.set_overflowed_steps(position.overflowed_steps());
  }
  if (position.large_gradient_steps() > 0) {
    result_.set_large_gradient_steps(position.large_gradient_steps());
  }
  if (position.stopped_early()) result_.set_stopped_early(true);
  if (position.has_gradient_norms()) {
    *result_.mutable_gradient_norms() = position.gradient_norms();
  }
  if (position.has_loss_scale()) loss_scale_ = position.loss_scale();
  if (evaluation.has_reduce_on_plateau()) plateau_.emplace(evaluation, position.plateau());
}

void RunRecord::CountStep(uint64_t samples, bool finite,
                          const absl::optional<LossScaleState>& loss_scale) {
  // If the scale cannot fall any more, it is not the cause of the overflow.
  const double scale = loss_scale_.has_value() ? loss_scale_->scale() : traits_.moving_loss_scale;
  if (!finite && loss_scale.has_value() && loss_scale->scale() < scale) {
    result_.set_overflowed_steps(result_.overflowed_steps() + 1);
  }
  loss_scale_ = loss_scale;
  result_.set_steps(result_.steps() + 1);
  result_.set_samples(result_.samples() + samples);
  if (!finite) result_.set_skipped_steps(result_.skipped_steps() + 1);
  skipped_in_a_row_ = finite ? 0 : skipped_in_a_row_ + 1;
}

void RunRecord::AddGradientNorm(double norm, float clip_factor) {
  AddNorm(norm, clip_factor, result_.mutable_gradient_norms());
}

bool RunRecord::Validate(const MetricValues& values) {
  validated_step_ = step();
  if (plateau_.has_value()) plateau_->Offer(values);
  if (!best_.Offer(values)) return false;
  *result_.mutable_valid() = values;
  // The cut of the new best validation has no name yet, so the name of the previous best cut must
  // be removed.
  best_validation_.emplace();
  *best_validation_->mutable_values() = values;
  best_validation_->set_step(step());
  return true;
}

absl::optional<MovingLabelRate> RunRecord::moving_label_rate() const {
  return traits_.has_record_order ? labels_.FindMovingRate() : absl::nullopt;
}

absl::optional<double> RunRecord::plateau_factor() const {
  if (!plateau_.has_value()) return absl::nullopt;
  return plateau_->factor();
}

void RunRecord::FillPosition(RunPosition* position) const {
  position->set_step(step());
  position->set_samples(result_.samples());
  if (validated_step_.has_value()) position->set_validated_step(*validated_step_);
  if (best_validation_.has_value()) *position->mutable_best() = *best_validation_;
  position->set_validations_without_best(static_cast<uint32_t>(best_.without_best()));
  position->set_stopped_early(result_.stopped_early());
  position->set_skipped_steps(result_.skipped_steps());
  if (result_.overflowed_steps() > 0) position->set_overflowed_steps(result_.overflowed_steps());
  if (!labels_.state().samples().empty()) *position->mutable_label_windows() = labels_.state();
  position->set_skipped_steps_in_a_row(skipped_in_a_row_);
  if (result_.large_gradient_steps() > 0) {
    position->set_large_gradient_steps(result_.large_gradient_steps());
  }
  position->set_train_seconds(static_cast<double>(trained_us_) * 1e-6);
  if (loss_scale_.has_value()) *position->mutable_loss_scale() = *loss_scale_;
  if (plateau_.has_value()) *position->mutable_plateau() = plateau_->state();
  if (result_.has_gradient_norms()) {
    *position->mutable_gradient_norms() = result_.gradient_norms();
  }
}

RunResult RunRecord::Result() const {
  RunResult result = result_;
  result.set_train_seconds(static_cast<double>(trained_us_) * 1e-6);
  result.set_best_step(best_validation_.has_value() ? best_validation_->step() : step());
  if (best_validation_.has_value()) result.set_model_dir(best_validation_->cut());
  if (const auto rate = labels_.Rate()) result.set_train_label_rate(*rate);
  if (const auto moving = moving_label_rate()) *result.mutable_moving_label_rate() = *moving;
  return result;
}

}  // namespace satrap
