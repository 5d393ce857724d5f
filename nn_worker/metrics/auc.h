// The area under the ROC curve, exactly: P(score of a positive > score of a negative) + 1/2
// P(equal), weighted.
//
// Merge divides the scores among the ranks by range, with equal scores on one rank, and each rank
// sorts and adds up its range. So the result does not depend on how samples were divided among
// ranks (up to the rounding of sums of weights; exactly if all weights are 1).
//
// Memory: 8 bytes for each sample of this rank while samples are added. Merge needs no more,
// because the rank's range replaces its samples. Samples with the same score and class are joined,
// so they need less memory.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_AUC_H_
#define SATRAP_NN_WORKER_METRICS_AUC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/metrics/sorted_blocks.h"

namespace satrap {

// A metric that may be undefined.
struct MetricValue {
  double value = 0;    // NaN if undefined
  std::string reason;  // why it is undefined; empty if it is not
};

class Auc {
 public:
  Auc();

  // `label` is 0 or 1 (anything above 1/2 is positive). `weight` is not negative; a sample of
  // weight 0 adds nothing. REQUIRES: Merge has not been called
  void Add(float score, float label, float weight);

  // Collective. From then on Compute covers the samples of all ranks, and returns the same bits on
  // each. Errors are those of ExchangeEntries (entry_exchange.h).
  absl::Status Merge(Collective* collective);

  // Undefined without a positive or without a negative, or if a score was NaN.
  MetricValue Compute();

 private:
  // Upper half: the key of a score, which has the order of the scores. Lower half: the key of a
  // weight, which is negative for negative samples.
  using Entry = uint64_t;

  // Sums over the samples in a range of scores. Numbers of pairs are products of sums and soon
  // exceed 2^53; long double keeps them exact.
  struct Totals {
    long double positives = 0;
    long double negatives = 0;
    long double won = 0;  // pairs of a positive and a negative, ties one half
    uint64_t nan_scores = 0;
  };

  // The smallest score key that belongs to rank 1, to rank 2 and so on, when Merge divides the
  // scores among the ranks.
  absl::StatusOr<std::vector<uint32_t>> FindBorders(Collective* collective) const;
  Totals AddUp();

  SortedBlocks<Entry> entries_;
  uint64_t nan_scores_ = 0;
  absl::optional<Totals> merged_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_AUC_H_
