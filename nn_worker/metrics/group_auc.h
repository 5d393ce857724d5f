// GAUC, weighted by samples (Zhu et al., "Deep Interest Network" (2018), section 6.2, with impressions
// as weights): how well scores rank samples within a group, such as the impressions of one user.
//
//   GAUC = sum over groups of n * AUC / sum over groups of n
//
// AUC is that of the group's samples (auc.h: weighted, ties one half) and n the sum of their weights.
// Groups of one class have no AUC and are left out, and counted. Undefined (NaN) without a group of
// both classes, or if a score is NaN.
//
// Each group is computed by one rank, hash(group) mod W, from the samples of all ranks; only sums over
// groups differ in their order with W. Memory: 24 bytes for each sample, of all ranks in Merge.

#ifndef SATRAP_NN_WORKER_METRICS_GROUP_AUC_H_
#define SATRAP_NN_WORKER_METRICS_GROUP_AUC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nn_worker/metrics/pass_metric.h"

namespace satrap {

class GroupAuc final : public PassMetric {
 public:
  // REQUIRES: the samples have groups
  void Add(const ScoredSamples& samples) override;
  absl::Status Merge(Collective* collective) override;
  void Finish(MetricValues* values) override;

 private:
  struct Entry {
    uint64_t group;
    float score;
    double weight;  // negative: of a negative sample
  };
  // Sums over groups, of one rank and then of all.
  enum Sum { kWeightedAuc, kWeight, kGroups, kLeftOut, kNanScores, kNumSums };

  std::string Encode() const;
  absl::Status AppendGroupsOf(int rank, int num_ranks, absl::string_view bytes);
  // Adds the group of entries [begin, end), sorted by score.
  void AddGroup(const Entry* begin, const Entry* end);

  std::vector<Entry> entries_;
  double sums_[kNumSums] = {};
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_GROUP_AUC_H_
