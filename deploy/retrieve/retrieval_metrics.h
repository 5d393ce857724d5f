// Metrics of ranked lists against the items that were held out for each user, as means over the
// users that have such items. Let H be the held-out items of a user, and h_i = 1 if item i of the
// list, counted from 1, is one of them:
//
//   recall@k    sum_{i<=k} h_i / |H|
//   hit_rate@k  1 if any h_i, i <= k
//   ndcg@k      sum_{i<=k} h_i / log2(i + 1)  /  sum_{i<=min(k,|H|)} 1 / log2(i + 1)
//   mrr@k       1 / the least i <= k with h_i; 0 if there is none
//
// NDCG with gains of 0 and 1 follows Jarvelin and Kekalainen, "Cumulated gain-based evaluation of
// IR techniques" (2002).
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_METRICS_H_
#define SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace satrap {

struct RetrievalValues {
  int k = 0;
  double recall = 0;
  double ndcg = 0;
  double hit_rate = 0;
  double mrr = 0;
};

class RetrievalMetrics {
 public:
  // The values of k to compute. REQUIRES: each >= 1
  explicit RetrievalMetrics(absl::Span<const int> ks);

  // Adds a user. A user without held-out items does not count. A held-out item that is given twice
  // counts once.
  void Add(absl::Span<const uint32_t> ranked, absl::Span<const uint32_t> held_out);

  int64_t users() const { return users_; }
  // One element for each k, in the order given. NaN if there was no user.
  std::vector<RetrievalValues> Values() const;

 private:
  int64_t users_ = 0;
  std::vector<RetrievalValues> sums_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_METRICS_H_
