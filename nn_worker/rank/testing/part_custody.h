// Tracks which rank holds which part in a FakeCluster. A CHECK fails unless
//   - a Lookup misses at most max_staleness - 1 pushes of its rank, none during the warm-up;
//   - an ordered Lookup of step s comes when exactly the steps before s are pushed, by all ranks;
//   - an evaluation Lookup misses no push of any rank;
//   - a part is handed out once.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_PART_CUSTODY_H_
#define SATRAP_NN_WORKER_RANK_TESTING_PART_CUSTODY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/checkpoint/ledger/ledger.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/testing/fake_part.h"
#include "nn_worker/rank/testing/fake_record.h"

namespace satrap {

class PartCustody {
 public:
  // Nothing is owned.
  PartCustody(const RankOptions& options, const FakeOrders* orders, const FakeRecord* record)
      : options_(options), orders_(orders), record_(record), outstanding_(options.num_ranks, 0) {}

  // A rank receives a part, at the moment when the part's rows are looked up. `step` is the step
  // that the rank asked for in ordered mode; nullopt otherwise.
  void HandOut(int rank, const FakePart& part, absl::optional<uint64_t> step);
  // The rank has pushed or acknowledged the part.
  void End(int rank, const FakePart& part);

  // A push of `step` has arrived.
  void Push(uint64_t step) { ++pushes_of_step_[step]; }
  // Whether the embedding PSs apply the step. In ordered mode they need the pushes of all ranks.
  bool Applies(uint64_t step) const {
    return !options_.ordered || pushes_of_step_.at(step) == options_.num_ranks;
  }

  // CHECKs that no rank holds a part of the train stream.
  void CheckNoneIsHeld() const;
  // The training parts that have ended since the cluster began.
  const Ledger& ended() const { return ended_; }
  const std::set<std::string>& ended_names() const { return ended_names_; }

 private:
  int MayHold() const;  // training parts that a rank may hold now

  const RankOptions options_;
  const FakeOrders* const orders_;
  const FakeRecord* const record_;
  std::vector<int> outstanding_;  // by rank: training parts handed out and not ended
  std::map<uint64_t, int> pushes_of_step_;
  std::set<std::string> handed_out_;
  Ledger ended_;
  std::set<std::string> ended_names_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_PART_CUSTODY_H_
