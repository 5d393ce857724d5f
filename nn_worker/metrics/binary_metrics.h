// The metrics of a binary label over one evaluation pass: each rank adds the samples it scored,
// then all merge.
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

// What MetricValues of proto/control.proto holds, and more; says why a metric is undefined.
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
  // Empty weights or mask: all 1. A sample whose mask is 0 does not take part.
  // REQUIRES: equal sizes, weights and mask unless empty
  void Add(absl::Span<const float> logits, absl::Span<const float> labels,
           absl::Span<const float> weights, absl::Span<const float> mask);

  // Replaces the state of every rank by that of all ranks' samples. Every rank calls it, those
  // without samples too; it returns when all have. Errors are the collective's.
  absl::StatusOr<MetricValues> Merge(Collective* collective);

  // Of what this object holds: this rank's samples before Merge, all ranks' after.
  MetricReport Report();
  double LocalAuc() { return auc_.Compute().value; }

 private:
  Auc auc_;
  LogLoss log_loss_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_BINARY_METRICS_H_
