// The AUC of the most recent samples, for the progress line. It is an estimate in constant memory
// (score_histogram.h). Nothing depends on this number; evaluations are exact.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_RECENT_AUC_H_
#define SATRAP_NN_WORKER_METRICS_RECENT_AUC_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/metrics/auc.h"
#include "nn_worker/metrics/score_histogram.h"

namespace satrap {

class RecentAuc {
 public:
  // After `samples` samples were added, the AUC covers only the most recent ones: at least
  // `samples` and at most twice as many.
  explicit RecentAuc(int64_t samples);

  // If weights or mask are empty, they are all 1. A sample is left out if its mask is 0, or if its
  // logit is NaN.
  void Add(absl::Span<const float> logits, absl::Span<const float> labels,
           absl::Span<const float> weights, absl::Span<const float> mask);

  MetricValue Compute() const;

 private:
  const int64_t samples_;
  ScoreHistogram current_, previous_;
  int64_t current_samples_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_RECENT_AUC_H_
