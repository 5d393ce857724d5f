// Decides which validation was the best so far, and whether to stop because there has been no
// better one for a long time.
//
// The decision depends only on the values offered (those of the task that evaluation.task names),
// so all ranks decide alike. NaN (a validation set with one class, or without samples) is never the
// best.

#ifndef SATRAP_NN_WORKER_RANK_SCHEDULE_BEST_MODEL_H_
#define SATRAP_NN_WORKER_RANK_SCHEDULE_BEST_MODEL_H_

#include "absl/types/optional.h"
#include "nn_worker/rank/schedule/metric_value.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class BestModel {
 public:
  // `best` holds the values of the best validation so far, by the same metric and task, and
  // `without_best` counts the validations since then.
  explicit BestModel(const EvaluationConfig& config,
                     const absl::optional<MetricValues>& best = absl::nullopt, int without_best = 0)
      : metric_(config.metric()), patience_(config.patience()), without_best_(without_best) {
    if (best.has_value()) best_ = GoodnessOf(*best);
    has_best_ = best.has_value() && best_ == best_;
  }

  // True if these values are the best so far: better than all before, or the first.
  bool Offer(const MetricValues& values) {
    const double value = GoodnessOf(values);
    if (values.samples() > 0 && value == value && (!has_best_ || value > best_)) {
      has_best_ = true;
      best_ = value;
      without_best_ = 0;
      return true;
    }
    ++without_best_;
    return false;
  }

  // True if the last `patience` validations brought no new best.
  bool out_of_patience() const { return patience_ > 0 && without_best_ >= patience_; }
  // The number of validations since the best one.
  int without_best() const { return without_best_; }

 private:
  // The metric's value, negated if a lower value is better, so that a higher result is always
  // better. NaN if `values` lacks the metric.
  double GoodnessOf(const MetricValues& values) const {
    const double value = ValueOf(metric_, values);
    return IsHigherBetter(metric_) ? value : -value;
  }

  const Metric metric_;
  const int patience_;
  bool has_best_ = false;
  double best_ = 0;
  int without_best_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_SCHEDULE_BEST_MODEL_H_
