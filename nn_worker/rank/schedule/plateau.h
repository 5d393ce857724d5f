// The factor on learning rates that is lowered when validations no longer improve (ReduceOnPlateau
// in proto/job.proto). It follows Keras' ReduceLROnPlateau without a cool-down:
//
//   - A validation that is better than the best by min_delta becomes the best; the count is set
//     to 0.
//   - Any other validation, including NaN, adds 1 to the count. At `patience` the factor is
//     multiplied by `factor`, down to min_factor, and the count is set to 0.
//   - A factor that has reached min_factor is not lowered any more.
//
// The factor depends only on its initial state and the values offered, so all ranks have the same
// factor, and a run that continues from a cut has the same factor as one that was never
// interrupted.

#ifndef SATRAP_NN_WORKER_RANK_SCHEDULE_PLATEAU_H_
#define SATRAP_NN_WORKER_RANK_SCHEDULE_PLATEAU_H_

#include <algorithm>
#include <cmath>

#include "nn_worker/rank/schedule/metric_value.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class Plateau {
 public:
  // `state` is the state in the cut from which training continues, or is empty.
  Plateau(const EvaluationConfig& config, const PlateauState& state)
      : metric_(config.metric()), rule_(config.reduce_on_plateau()), state_(state) {
    if (!state_.has_factor()) state_.set_factor(1);
  }

  // Judges a validation. Returns whether it has lowered the factor.
  bool Offer(const MetricValues& values) {
    if (IsBetter(values)) {
      state_.set_best(ValueOf(metric_, values));
      state_.set_validations_without_best(0);
      return false;
    }
    state_.set_validations_without_best(state_.validations_without_best() + 1);
    const bool waits = state_.validations_without_best() < static_cast<uint32_t>(rule_.patience());
    if (waits || state_.factor() <= rule_.min_factor()) return false;
    state_.set_factor(std::max(state_.factor() * rule_.factor(), rule_.min_factor()));
    state_.set_reductions(state_.reductions() + 1);
    state_.set_validations_without_best(0);
    return true;
  }

  // The product of all reductions, and their number.
  double factor() const { return state_.factor(); }
  uint32_t reductions() const { return state_.reductions(); }
  const PlateauState& state() const { return state_; }

 private:
  bool IsBetter(const MetricValues& values) const {
    const double value = ValueOf(metric_, values);
    if (values.samples() == 0 || std::isnan(value)) return false;
    if (!state_.has_best()) return true;
    const double gain = IsHigherBetter(metric_) ? value - state_.best() : state_.best() - value;
    return gain > 0 && gain >= rule_.min_delta();
  }

  const Metric metric_;
  const ReduceOnPlateau rule_;
  PlateauState state_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_SCHEDULE_PLATEAU_H_
