// Returns one metric's value from the metrics of a validation.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_RANK_SCHEDULE_METRIC_VALUE_H_
#define SATRAP_NN_WORKER_RANK_SCHEDULE_METRIC_VALUE_H_

#include <limits>

#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

inline bool IsHigherBetter(Metric metric) { return metric == AUC || metric == GAUC; }

// NaN if there is no such value.
inline double ValueOf(Metric metric, const MetricValues& values) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  switch (metric) {
    case AUC:
      return values.has_auc() ? values.auc() : none;
    case GAUC:
      return values.has_gauc_by_samples() ? values.gauc_by_samples() : none;
    case LOGLOSS:
      return values.has_logloss() ? values.logloss() : none;
    case MAE:
      return values.has_mae() ? values.mae() : none;
    case MSE:
      return values.has_mse() ? values.mse() : none;
    case RMSE:
      return values.has_rmse() ? values.rmse() : none;
  }
  return none;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_SCHEDULE_METRIC_VALUE_H_
