// A PassMetric judges the scores of one task over an evaluation pass. Each rank adds the samples
// that it has scored. Then all ranks merge, after which each has the same values, as if one rank
// had added all samples (up to the rounding of sums).
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_PASS_METRIC_H_
#define SATRAP_NN_WORKER_METRICS_PASS_METRIC_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn_worker/collective/collective.h"
#include "proto/metrics.pb.h"

namespace satrap {

// The samples of one part and one task.
struct ScoredSamples {
  absl::Span<const float> scores;  // [samples, outputs]: what the task's layer gave
  size_t outputs = 1;
  absl::Span<const float> labels;     // [samples]
  absl::Span<const float> weights;    // [samples]; empty: all 1
  absl::Span<const float> mask;       // [samples]; 0: the sample does not count; empty: all count
  absl::Span<const uint64_t> groups;  // [samples]; empty: not known

  bool counts(size_t i) const { return mask.empty() || mask[i] != 0; }
  double weight(size_t i) const { return weights.empty() ? 1.0 : weights[i]; }
};

class PassMetric {
 public:
  virtual ~PassMetric() = default;

  // REQUIRES: not after Merge
  virtual void Add(const ScoredSamples& samples) = 0;

  // Replaces each rank's state by the state for the samples of all ranks. Every rank calls this
  // once, with or without samples; it returns when all ranks have called it. Errors are the
  // collective's, or INVALID_ARGUMENT if another rank's state cannot be read.
  virtual absl::Status Merge(Collective* collective) = 0;

  // Sets the values of this metric; NaN where the samples do not define one. REQUIRES: after Merge
  virtual void Finish(MetricValues* values) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_PASS_METRIC_H_
