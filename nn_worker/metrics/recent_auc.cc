#include "nn_worker/metrics/recent_auc.h"

#include <cmath>
#include <utility>

#include "common/base/check.h"

namespace satrap {

RecentAuc::RecentAuc(int64_t samples) : samples_(samples) { CHECK(samples > 0); }

void RecentAuc::Add(absl::Span<const float> logits, absl::Span<const float> labels,
                    absl::Span<const float> weights, absl::Span<const float> mask) {
  CHECK(labels.size() == logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if ((!mask.empty() && mask[i] == 0) || std::isnan(logits[i])) continue;
    // Samples cannot be taken out of a histogram one by one, so the older half is dropped as a
    // whole.
    if (current_samples_ >= samples_) {
      std::swap(current_, previous_);
      current_.Clear();
      current_samples_ = 0;
    }
    current_.Add(logits[i], labels[i], weights.empty() ? 1.0 : weights[i]);
    ++current_samples_;
  }
}

MetricValue RecentAuc::Compute() const {
  ScoreHistogram both = current_;
  both.Merge(previous_);
  return both.Auc();
}

}  // namespace satrap
