// The StepTrainer of a rank in a FakeCluster: it has no network, but only the calls that ranks make
// together. It CHECKs that no cut begins after another model was restored, and that a step has
// ended before the next is joined. It also CHECKs that parts are joined in the order in which they
// were prepared, and that at most kPreparedParts are prepared.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_FAKE_TRAINER_H_
#define SATRAP_NN_WORKER_RANK_TESTING_FAKE_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/testing/manual_executor.h"
#include "nn_worker/rank/step_trainer.h"
#include "nn_worker/rank/testing/fake_allreduce.h"
#include "nn_worker/rank/testing/fake_cuts.h"
#include "nn_worker/rank/testing/fake_record.h"

namespace satrap {

// Sums over all ranks.
struct FakeEvaluation {
  uint64_t scored_samples = 0;  // in the current pass
  size_t validations = 0;       // merged so far
  bool restored = false;        // to a model other than the last one
};

class FakeTrainer final : public StepTrainer {
 public:
  struct Cluster {  // nothing is owned
    ManualExecutor* executor = nullptr;
    int64_t delay_us = 0;  // until a rank joins a step
    const FakeOrders* orders = nullptr;
    FakeRecord* record = nullptr;
    FakeAllreduce* allreduce = nullptr;
    FakeCuts* cuts = nullptr;
    FakeEvaluation* evaluation = nullptr;
  };
  FakeTrainer(const Cluster& cluster, int rank) : cluster_(cluster), rank_(rank) {}

  std::unique_ptr<PreparedPart> Prepare(PartInput part) override;
  void JoinStep(uint64_t step, std::unique_ptr<PreparedPart> part, StepFlags flags,
                absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) override;
  void EndStep(double squares, absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) override;
  void Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) override;
  void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) override;
  void BeginCut(CutPlan plan, absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended) override;
  void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) override;
  void RestoreModel(const std::string& cut, absl::AnyInvocable<void(absl::Status)> done) override;

 private:
  const Cluster cluster_;
  const int rank_;
  uint64_t prepared_ = 0;  // parts, so far
  uint64_t joined_ = 0;
  uint64_t ended_ = 0;
  bool waits_ = false;  // a step waits for EndStep
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_FAKE_TRAINER_H_
