// The AUC of the last samples, for the progress line: an estimate from histograms of the logit, in
// constant memory.
//
// Bins are 1/256 wide over [-16, 16); logits beyond fall into the outermost. What falls into one
// bin counts as equal: the error is at most half the share of pairs within one bin. Nothing is
// decided by this number; evaluations are exact.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_WINDOW_AUC_H_
#define SATRAP_NN_WORKER_METRICS_WINDOW_AUC_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "nn_worker/metrics/auc.h"

namespace satrap {

class WindowAuc {
 public:
  // The window holds between `window_samples` and twice as many, once that many were added.
  explicit WindowAuc(int64_t window_samples);

  // As BinaryMetrics::Add. A logit that is NaN is left out.
  void Add(absl::Span<const float> logits, absl::Span<const float> labels,
           absl::Span<const float> weights, absl::Span<const float> mask);

  MetricValue Compute() const;

 private:
  struct Histogram {
    std::vector<double> positive, negative;
    int64_t samples = 0;
    Histogram();
  };

  const int64_t window_samples_;
  Histogram current_, previous_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_WINDOW_AUC_H_
