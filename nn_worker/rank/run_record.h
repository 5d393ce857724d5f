// What a run has counted so far: steps, samples, validations with the best of them, and the time of
// training. A record begins with the position of a cut, and fills in the positions of later cuts
// and the result. So a figure that is kept here survives every restart.
//
// Not thread-safe. A record depends only on what is reported to it, so all ranks have the same one,
// except for the time of training.

#ifndef SATRAP_NN_WORKER_RANK_RUN_RECORD_H_
#define SATRAP_NN_WORKER_RANK_RUN_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "nn_worker/rank/schedule/best_model.h"
#include "nn_worker/rank/schedule/label_order.h"
#include "nn_worker/rank/schedule/plateau.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class RunRecord {
 public:
  // Properties of the run that its position does not contain.
  struct Traits {
    // The loss scale of the run's first step if the scale moves, that is, if steps that are not
    // finite halve it; 0 if the scale is fixed.
    double moving_loss_scale = 0;
    // Whether the run's records may have been sorted by label beforehand: true for files, false for
    // topics.
    bool has_record_order = true;
  };

  RunRecord(const EvaluationConfig& evaluation, const RunPosition& position)
      : RunRecord(evaluation, position, Traits()) {}
  RunRecord(const EvaluationConfig& evaluation, const RunPosition& position, const Traits& traits);

  // The number of steps counted so far, which is also the number of the next step.
  uint64_t step() const { return result_.steps(); }
  // The number of steps since the last finite step. None of them changed a value.
  uint64_t skipped_in_a_row() const { return skipped_in_a_row_; }
  // `loss_scale` is the state of the loss scale after the step.
  void CountStep(uint64_t samples, bool finite,
                 const absl::optional<LossScaleState>& loss_scale = absl::nullopt);

  // Call if the last step was finite and had a gradient whose magnitude is above kLargeGradient.
  void CountLargeGradient() {
    result_.set_large_gradient_steps(result_.large_gradient_steps() + 1);
  }

  // Replaces the `loss_scale` that was given to the last CountStep.
  void SetLossScale(const absl::optional<LossScaleState>& loss_scale) { loss_scale_ = loss_scale; }

  // Adds the labels of the last step, which must be of epoch 0: `samples` samples with labels of
  // two classes, which add up to `positives`.
  void AddLabels(uint64_t samples, double positives) { labels_.AddStep(samples, positives); }
  // Absent if the rate does not move, if it is not yet known whether it moves, or if the records
  // cannot be sorted.
  absl::optional<MovingLabelRate> moving_label_rate() const;

  // Adds the norm of all gradients of the last step, before they were multiplied by `clip_factor`.
  void AddGradientNorm(double norm, float clip_factor);

  // Judges a validation of the present step. Returns whether it is the best so far.
  bool Validate(const MetricValues& values);
  // With evaluation.reduce_on_plateau: the factor on learning rates from the next step on. Absent
  // if the job has no such rule.
  absl::optional<double> plateau_factor() const;
  uint32_t reductions() const { return plateau_.has_value() ? plateau_->reductions() : 0; }
  bool is_validated() const { return validated_step_ == step(); }
  bool out_of_patience() const { return best_.out_of_patience(); }
  // Sets the name of the cut that holds the best validation. REQUIRES: there was a best validation
  void SetBestCut(const std::string& cut) { best_validation_->set_cut(cut); }
  const absl::optional<BestValidation>& best() const { return best_validation_; }

  void StopEarly() { result_.set_stopped_early(true); }
  void AddTrainingTime(int64_t us) { trained_us_ += us; }

  // Sets all fields of `position` except epoch, next and lanes, which say where the order of parts
  // continues.
  void FillPosition(RunPosition* position) const;
  // Returns all figures that are known here. If no validation was the best, best_step is the last
  // step.
  RunResult Result() const;

 private:
  RunResult result_;
  const Traits traits_;
  uint64_t skipped_in_a_row_;
  absl::optional<LossScaleState> loss_scale_;
  LabelOrder labels_;
  absl::optional<uint64_t> validated_step_;
  BestModel best_;
  absl::optional<BestValidation> best_validation_;
  absl::optional<Plateau> plateau_;
  int64_t trained_us_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_RUN_RECORD_H_
