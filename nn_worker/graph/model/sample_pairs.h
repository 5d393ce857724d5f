// The pairs of a part that BPR compares (TaskConfig.BPR in proto/model.proto): with P positives and
// N negatives in a group, in the order of the part, pair m of max(P, N) is positive m mod P and
// negative m mod N. So every sample of a group that has both positives and negatives is in a pair,
// and there are no more pairs than samples. Groups come in ascending order.
//
// Example: labels 1 0 0 1 0 of one group give the pairs (0, 1) (3, 2) (0, 4).

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_SAMPLE_PAIRS_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_SAMPLE_PAIRS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace satrap {

// What losses with candidates need from a part. An item is identified by the number of its row in
// one table of the part, so equal items have equal numbers.
struct CandidateTargets {
  absl::Span<const uint32_t> items;        // [candidates]
  absl::Span<const uint32_t> positives;    // [samples]
  absl::Span<const float> log_q;           // [candidates]; with positive_log_q, or both are empty
  absl::Span<const float> positive_log_q;  // [samples]
};

// The values that the loss of one task needs from a part in addition to the layer's output.
struct LossTargets {
  absl::Span<const float> labels;     // [samples]
  absl::Span<const float> weights;    // [samples], of samples; empty: all 1
  absl::Span<const float> mask;       // [samples]; 0: the sample does not count; empty: all count
  absl::Span<const uint64_t> groups;  // [samples], read by BPR; empty: all of one group
  CandidateTargets candidates{};      // read by candidate losses
};

struct SamplePairs {
  std::vector<uint32_t> samples;  // [pairs, 2]: the positive and the negative
  std::vector<float> weights;     // [pairs]: the product of the samples' weights
};

// Replaces `*pairs`. A label above 1/2 is positive.
void MakePairs(const LossTargets& targets, SamplePairs* pairs);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_SAMPLE_PAIRS_H_
