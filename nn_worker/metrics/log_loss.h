// Logloss, normalised entropy (He et al. 2014), calibration and click rate. They are computed from
// five sums over samples, and two sets of sums are merged by addition. The sums are compensated
// (Neumaier 1974), so the results do not depend on how samples are divided among ranks, to within
// 1e-12.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_LOG_LOSS_H_
#define SATRAP_NN_WORKER_METRICS_LOG_LOSS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/metrics/auc.h"

namespace satrap {

// A sum that also adds up its rounding errors.
class CompensatedSum {
 public:
  void Add(double value);
  double value() const { return sum_ + error_; }

 private:
  double sum_ = 0;
  double error_ = 0;
};

class LogLoss {
 public:
  static constexpr int kSums = 5;

  // Computes the loss from the logit, without clipping: max(z, 0) - z y + log(1 + exp(-|z|)).
  void Add(float logit, float label, double weight);

  // Adds the samples of `other`.
  void Merge(const LogLoss& other);

  // The sums that ranks add up: samples, weight, weight of positives, weighted loss, weighted
  // probability.
  void Sums(absl::Span<double> sums) const;  // REQUIRES: kSums values
  void SetSums(absl::Span<const double> sums);

  double samples() const { return sums_[0].value(); }
  double weight() const { return sums_[1].value(); }
  MetricValue LogLossValue() const;
  // logloss / entropy of the click rate; undefined if there is only one class.
  MetricValue NormalisedEntropy() const;
  // Sum of predicted probabilities / sum of labels.
  MetricValue Calibration() const;

 private:
  CompensatedSum sums_[kSums];
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_LOG_LOSS_H_
