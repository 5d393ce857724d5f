// The cuts of a FakeCluster: what NetworkTrainer and CutEngine do for real ranks. A CHECK fails
// unless at a cut nothing is held, all ranks plan the same, and what they have released since the
// cut before is what was pushed or acknowledged since.

#ifndef SATRAP_NN_WORKER_RANK_FAKE_CUTS_H_
#define SATRAP_NN_WORKER_RANK_FAKE_CUTS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "common/checkpoint/ledger.h"
#include "common/testing/manual_executor.h"
#include "nn_worker/rank/fake_record.h"
#include "nn_worker/rank/part_custody.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/step_trainer.h"

namespace satrap {

class FakeCuts {
 public:
  using Marked = absl::AnyInvocable<void(absl::StatusOr<CutMarked>)>;
  using Ended = absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)>;

  // Nothing is owned.
  FakeCuts(const RankOptions& options, ManualExecutor* executor, const FakeOrders* orders,
           FakeRecord* record, const PartCustody* custody);

  // A rank has come to the next cut, which is marked when all have.
  void Begin(int rank, CutPlan plan, Marked marked, Ended ended);
  // Gets whether the cut that was begun last is committed, once it has ended.
  void Await(absl::AnyInvocable<void(absl::StatusOr<bool>)> done);

 private:
  struct Planner {
    CutPlan plan;
    Marked marked;
    Ended ended;
  };
  void Mark();
  void CheckPlans();
  void End(size_t cut);

  const RankOptions options_;
  ManualExecutor* const executor_;
  const FakeOrders* const orders_;
  FakeRecord* const record_;
  const PartCustody* const custody_;
  std::vector<Planner> planners_;  // of the ranks that have come to the cut; rank 0's first
  Ended ended_;                    // of rank 0
  bool writing_ = false;
  Ledger ledger_;  // handed over
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_FAKE_CUTS_H_
