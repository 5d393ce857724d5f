// The metrics of a binary label over one evaluation pass: each rank adds the samples that it
// scored, then all ranks merge.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_BINARY_METRICS_H_
#define SATRAP_NN_WORKER_METRICS_BINARY_METRICS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/metrics/auc.h"
#include "nn_worker/metrics/log_loss.h"
#include "proto/control.pb.h"

namespace satrap {

// The fields of MetricValues (proto/control.proto) and more, with the reason if one is undefined.
struct MetricReport {
  double samples = 0;
  double weight = 0;
  MetricValue auc;
  MetricValue logloss;
  MetricValue normalised_entropy;
  MetricValue calibration;
  MetricValue click_rate;
};

class BinaryMetrics {
 public:
  // Empty weights or mask: all 1. A sample whose mask is 0 is ignored.
  // REQUIRES: all sizes are equal, except those of empty weights or an empty mask
  void Add(absl::Span<const float> logits, absl::Span<const float> labels,
           absl::Span<const float> weights, absl::Span<const float> mask);

  // Replaces the state of each rank by the state of the samples of all ranks. Every rank calls it,
  // with or without samples; it returns when all have. Errors are the collective's.
  absl::StatusOr<MetricValues> Merge(Collective* collective);

  // Covers this rank's samples before Merge, and those of all ranks after it.
  MetricReport Report();

 private:
  Auc auc_;
  LogLoss log_loss_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_BINARY_METRICS_H_
