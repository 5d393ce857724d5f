#include "nn_worker/graph/model/sample_pairs.h"

#include <algorithm>
#include <numeric>

namespace satrap {
namespace {

void AddPairs(const LossTargets& targets, const std::vector<uint32_t>& positives,
              const std::vector<uint32_t>& negatives, SamplePairs* pairs) {
  if (positives.empty() || negatives.empty()) return;
  const size_t count = std::max(positives.size(), negatives.size());
  for (size_t m = 0; m < count; ++m) {
    const uint32_t p = positives[m % positives.size()];
    const uint32_t n = negatives[m % negatives.size()];
    pairs->samples.push_back(p);
    pairs->samples.push_back(n);
    pairs->weights.push_back(targets.weights.empty() ? 1 : targets.weights[p] * targets.weights[n]);
  }
}

}  // namespace

void MakePairs(const LossTargets& targets, SamplePairs* pairs) {
  pairs->samples.clear();
  pairs->weights.clear();
  std::vector<uint32_t> order(targets.labels.size());
  std::iota(order.begin(), order.end(), 0);
  const auto group = [&targets](uint32_t i) {
    return targets.groups.empty() ? 0 : targets.groups[i];
  };
  // The sort is stable, so the samples of a group keep the order of the part.
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return group(a) < group(b); });
  std::vector<uint32_t> positives, negatives;
  for (size_t at = 0; at < order.size(); ++at) {
    const uint32_t i = order[at];
    if (targets.mask.empty() || targets.mask[i] != 0) {
      (targets.labels[i] > 0.5f ? positives : negatives).push_back(i);
    }
    if (at + 1 < order.size() && group(order[at + 1]) == group(i)) continue;
    AddPairs(targets, positives, negatives, pairs);
    positives.clear();
    negatives.clear();
  }
}

}  // namespace satrap
