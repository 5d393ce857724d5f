// Which validation was the best so far, and whether to stop because none has been better for long.
//
// A pure function of the values offered, so all ranks decide alike from the same metrics. NaN (a
// validation set of one class, or of no samples) is never the best.

#ifndef SATRAP_NN_WORKER_RANK_BEST_MODEL_H_
#define SATRAP_NN_WORKER_RANK_BEST_MODEL_H_

#include "absl/types/optional.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class BestModel {
 public:
  explicit BestModel(const EvaluationConfig& config)
      : metric_(config.metric()), patience_(config.patience()) {}

  // True if these values are the best so far: better than all before, or the first.
  bool Offer(const MetricValues& values) {
    const double value = metric_ == AUC ? values.auc() : -values.logloss();
    if (values.samples() > 0 && value == value && (!best_ || value > *best_)) {
      best_ = value;
      without_best_ = 0;
      return true;
    }
    ++without_best_;
    return false;
  }

  // The last `patience` validations were no new best.
  bool out_of_patience() const { return patience_ > 0 && without_best_ >= patience_; }

 private:
  const Metric metric_;
  const int patience_;
  absl::optional<double> best_;
  int without_best_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_BEST_MODEL_H_
