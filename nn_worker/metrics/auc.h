// The area under the ROC curve, exactly: P(score of a positive > score of a negative) + 1/2
// P(equal), weighted.
//
// An Auc holds the weights of positives and negatives of each distinct float32 score. States of
// disjoint samples merge to the state of them all, so any division among ranks gives the same
// number (to the rounding of sums of weights, and exactly where weights are 1). Memory: 20 bytes a
// distinct score.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_AUC_H_
#define SATRAP_NN_WORKER_METRICS_AUC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace satrap {

// A metric that may be undefined.
struct MetricValue {
  double value = 0;    // NaN if undefined
  std::string reason;  // why it is undefined; empty if it is not
};

class Auc {
 public:
  // `label` is 0 or 1 (anything above 1/2 is positive). A weight of 0 adds nothing.
  void Add(float score, float label, double weight);
  void Merge(const Auc& other);

  // Undefined without a positive or without a negative, or if a score was NaN.
  MetricValue Compute();

  // For another rank: u64 entries | u64 NaN scores | entries of {u32 key, f64 positive, f64
  // negative}, little-endian.
  std::string Encode();
  // Merges what Encode gave. INVALID_ARGUMENT if it is not that.
  absl::Status MergeEncoded(absl::string_view bytes);

 private:
  struct Entry {
    uint32_t key;  // orders as the score does
    double positive;
    double negative;
  };

  void Append(const Entry& entry);
  // Sorts the entries by key and joins those of one key.
  void Compact();

  std::vector<Entry> entries_;
  size_t compacted_ = 0;  // entries at the front that are sorted and distinct
  uint64_t nan_scores_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_AUC_H_
