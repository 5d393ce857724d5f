// GAUC, weighted by samples (Zhu et al., "Deep Interest Network" (2018), section 6.2, with
// impressions as weights): how well scores rank samples within a group, such as the impressions of
// one user.
//
//   GAUC = sum over groups of n * AUC / sum over groups of n
//
// AUC is computed from the group's samples (as in auc.h: weighted, and a tie counts one half), and
// n is the sum of their weights. Groups with only one class have no AUC; they are left out and
// counted. Undefined (NaN) if no group has both classes, or if a score is NaN.
//
// Each group is computed by one rank, hash(group) mod W, from the samples of all ranks, and sums
// over groups are rounded once, so the bits do not depend on W. Memory: 16 bytes for each sample of
// this rank. Merge replaces these samples by those of this rank's groups, so that all samples of a
// group are on one rank.

#ifndef SATRAP_NN_WORKER_METRICS_GROUP_AUC_H_
#define SATRAP_NN_WORKER_METRICS_GROUP_AUC_H_

#include <cstdint>
#include <tuple>

#include "common/numeric/exact_sum.h"
#include "nn_worker/metrics/pass_metric.h"
#include "nn_worker/metrics/sorted_blocks.h"

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
    float weight;  // negative: of a negative sample

    // The order includes the weight, so that a group's sums do not depend on which rank had which
    // samples.
    bool operator<(const Entry& other) const {
      return std::tie(group, score, weight) < std::tie(other.group, other.score, other.weight);
    }
  };
  // Counts of groups or samples: before Merge those of this rank, afterwards those of all ranks.
  enum Count { kGroups, kLeftOut, kNanScores, kNumCounts };

  // Adds up this rank's groups. REQUIRES: this rank has all samples of these groups
  void AddGroups();
  absl::Status AddUpRanks(Collective* collective);

  SortedBlocks<Entry> entries_;
  double counts_[kNumCounts] = {};
  ExactSum weighted_auc_, weight_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_GROUP_AUC_H_
