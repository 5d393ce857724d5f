// The cuts of a FakeCluster. (With real ranks, NetworkTrainer and CutEngine make the cuts.) At each
// cut it CHECKs that no part is held, that all ranks have the same plan, and that the parts which
// they report as released are those that were pushed or acknowledged since the previous cut.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_FAKE_CUTS_H_
#define SATRAP_NN_WORKER_RANK_TESTING_FAKE_CUTS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/testing/manual_executor.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/step_trainer.h"
#include "nn_worker/rank/testing/fake_record.h"
#include "nn_worker/rank/testing/part_custody.h"

namespace satrap {

class FakeCuts {
 public:
  using Marked = absl::AnyInvocable<void(absl::StatusOr<CutMarked>)>;
  using Ended = absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)>;

  // Nothing is owned.
  FakeCuts(const RankOptions& options, ManualExecutor* executor, const FakeOrders* orders,
           FakeRecord* record, const PartCustody* custody);

  // Call when rank `rank` has reached the next cut. The cut is marked when all ranks have reached
  // it.
  void Begin(int rank, CutPlan plan, Marked marked, Ended ended);
  // Waits until the last cut that was begun has ended. `done` gets true if that cut is committed,
  // and false if it was abandoned.
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
  std::vector<Planner> planners_;  // of the ranks that have reached the cut; rank 0's is first
  Ended ended_;                    // of rank 0
  bool writing_ = false;
  Ledger ledger_;  // what all cuts so far have handed over
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_FAKE_CUTS_H_
