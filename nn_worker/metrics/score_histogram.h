// Counts positive and negative samples by their logits. The AUC from these counts is an estimate in
// constant memory, 128 KiB.
//
// Bins are 1/256 wide over [-16, 16); logits beyond that range fall into the outermost bins. Logits
// in one bin count as equal, so the error is at most half the fraction of pairs that share a bin.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_SCORE_HISTOGRAM_H_
#define SATRAP_NN_WORKER_METRICS_SCORE_HISTOGRAM_H_

#include <vector>

#include "nn_worker/metrics/auc.h"

namespace satrap {

class ScoreHistogram {
 public:
  ScoreHistogram();

  // REQUIRES: `logit` is not NaN
  void Add(float logit, float label, double weight);
  void Merge(const ScoreHistogram& other);
  void Clear();

  MetricValue Auc() const;

 private:
  std::vector<double> positive_, negative_;  // weights by bin
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_SCORE_HISTOGRAM_H_
