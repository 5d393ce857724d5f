// The AUC of the last samples, for the progress line: an estimate from histograms of the logits, in
// constant memory.
//
// Bins are 1/256 wide over [-16, 16); logits beyond that fall into the outermost ones. Logits in
// one bin count as equal, so the error is at most half the fraction of pairs that share a bin.
// Nothing depends on this number; evaluations are exact.
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
  // Once `window_samples` were added, the window holds between that many and twice as many.
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
