// The allreduce and the barriers of the ranks of a FakeCluster, in one thread: each ends when all
// ranks have joined. A CHECK fails unless ranks agree on the step and its rates, an idle rank has
// no part, and only rank 0 asks for a cut.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_FAKE_ALLREDUCE_H_
#define SATRAP_NN_WORKER_RANK_TESTING_FAKE_ALLREDUCE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/optional.h"
#include "common/testing/manual_executor.h"
#include "nn_worker/rank/step_trainer.h"
#include "nn_worker/rank/testing/fake_record.h"

namespace satrap {

class FakeAllreduce {
 public:
  // What one rank contributes to a step that it joins.
  struct Joiner {
    uint64_t step = 0;
    absl::optional<PartInput> part;
    StepFlags flags;
    absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done;
  };

  // Each rank gets the result of a step `delay_us` after the last rank has joined it. Nothing is
  // owned.
  FakeAllreduce(int num_ranks, ManualExecutor* executor, int64_t delay_us, const FakeOrders* orders,
                FakeRecord* record);

  void JoinStep(int rank, Joiner joiner);
  // Rank `rank` enters its next barrier, of kind `what`. When the last rank has entered that
  // barrier, runs `done` of all ranks, and then `last` of the rank that came last.
  void Barrier(
      int rank, const std::string& what, absl::AnyInvocable<void()> done,
      absl::AnyInvocable<void()> last = [] {});

 private:
  void FinishStep();

  ManualExecutor* const executor_;
  const int64_t delay_us_;
  const FakeOrders* const orders_;
  FakeRecord* const record_;
  std::vector<absl::optional<Joiner>> joiners_;  // by rank
  std::map<std::string, std::vector<absl::AnyInvocable<void()>>> barriers_;
  std::vector<int> barrier_count_;  // by rank: barriers entered
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_FAKE_ALLREDUCE_H_
