#include "deploy/retrieve/retrieval_metrics.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "common/base/check.h"

namespace satrap {
namespace {

// `position` is the item's position in the list, counted from 0.
double Discount(size_t position) { return 1 / std::log2(static_cast<double>(position) + 2); }

}  // namespace

RetrievalMetrics::RetrievalMetrics(absl::Span<const int> ks) {
  for (int k : ks) {
    CHECK(k >= 1);
    RetrievalValues sum;
    sum.k = k;
    sums_.push_back(sum);
  }
}

void RetrievalMetrics::Add(absl::Span<const uint32_t> ranked, absl::Span<const uint32_t> held_out) {
  const absl::flat_hash_set<uint32_t> relevant(held_out.begin(), held_out.end());
  if (relevant.empty()) return;
  ++users_;
  for (RetrievalValues& sum : sums_) {
    const size_t k = static_cast<size_t>(sum.k);
    int64_t hits = 0;
    double gain = 0;
    double best_gain = 0;
    for (size_t i = 0; i < std::min(k, ranked.size()); ++i) {
      if (!relevant.contains(ranked[i])) continue;
      if (hits == 0) sum.mrr += 1 / static_cast<double>(i + 1);
      ++hits;
      gain += Discount(i);
    }
    for (size_t i = 0; i < std::min(k, relevant.size()); ++i) best_gain += Discount(i);
    sum.recall += static_cast<double>(hits) / static_cast<double>(relevant.size());
    sum.ndcg += gain / best_gain;
    sum.hit_rate += hits > 0 ? 1 : 0;
  }
}

std::vector<RetrievalValues> RetrievalMetrics::Values() const {
  std::vector<RetrievalValues> means = sums_;
  const double n = static_cast<double>(users_);
  for (RetrievalValues& mean : means) {
    // Without users this is 0 / 0 = NaN, as documented.
    mean.recall /= n;
    mean.ndcg /= n;
    mean.hit_rate /= n;
    mean.mrr /= n;
  }
  return means;
}

}  // namespace satrap
