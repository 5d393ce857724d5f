// The metrics of one task over one evaluation pass:
//
//   BCE                     AUC, log loss, normalised entropy, calibration; GAUC with groups
//   MSE                     MAE, MSE, RMSE
//   BPR                     AUC; GAUC with groups
//   SOFTMAX_CROSS_ENTROPY   log loss
//
// In addition there are the number of samples and, with two classes, the number of positives. All
// values except these numbers are weighted. Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_TASK_METRICS_H_
#define SATRAP_NN_WORKER_METRICS_TASK_METRICS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/metrics/pass_metric.h"
#include "proto/model.pb.h"

namespace satrap {

// Whether labels are 0 and 1 (or, with BCE, between 0 and 1), so that there is a label rate.
bool HasTwoClasses(TaskConfig::Loss loss);

class TaskMetrics {
 public:
  // `groups`: whether the samples have groups.
  TaskMetrics(TaskConfig::Loss loss, bool groups);

  // REQUIRES: what the metrics' Add requires; spans that are not empty have equal sizes
  void Add(const ScoredSamples& samples);

  // Returns the metrics of the samples of all ranks, and forgets the samples. Every rank calls
  // this, and gets the same bits. Errors are those of PassMetric::Merge.
  absl::StatusOr<MetricValues> Merge(Collective* collective);

 private:
  void Begin();

  const TaskConfig::Loss loss_;
  const bool groups_;
  std::vector<std::unique_ptr<PassMetric>> metrics_;
  double samples_ = 0;
  double positives_ = 0;  // of these, those with a label above 1/2
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_TASK_METRICS_H_
