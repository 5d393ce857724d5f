// The area under the ROC curve, exactly: P(score of a positive > score of a negative) + 1/2
// P(equal), weighted.
//
// An Auc holds the weights of positives and negatives for each distinct float32 score. Merging the
// states of disjoint sets of samples gives the state of their union, so the result does not depend
// on how samples are divided among ranks (up to the rounding of sums of weights; exactly if all
// weights are 1). Memory: 24 bytes for each distinct score.
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

  // The state, for another rank: u64 entries | u64 NaN scores | entries of {u32 key, f64 positive,
  // f64 negative}, little-endian.
  std::string Encode();
  // Merges an encoded state. INVALID_ARGUMENT if `bytes` is not one.
  absl::Status MergeEncoded(absl::string_view bytes);

 private:
  struct Entry {
    uint32_t key;  // has the order of the scores
    double positive;
    double negative;
  };

  void Append(const Entry& entry);
  // Sorts the entries and joins those with equal keys.
  void Compact();

  std::vector<Entry> entries_;
  size_t compacted_ = 0;  // entries at the front that are sorted and distinct
  uint64_t nan_scores_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_AUC_H_
