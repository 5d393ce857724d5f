#include "nn_worker/rank/fake_trainer.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "nn_worker/rank/fake_part.h"

namespace satrap {

void FakeTrainer::JoinStep(uint64_t step, absl::optional<PartInput> part, StepFlags flags,
                           absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) {
  auto joiner = std::make_shared<FakeAllreduce::Joiner>(
      FakeAllreduce::Joiner{step, std::move(part), flags, std::move(done)});
  cluster_.executor->PostAfter(cluster_.chance->DelayUs(), [this, joiner] {
    cluster_.allreduce->JoinStep(rank_, std::move(*joiner));
  });
}

void FakeTrainer::Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) {
  cluster_.record->scored.push_back(NameOf(part.header.part().id()));
  cluster_.evaluation->scored_samples += part.header.part().samples();
  done(absl::OkStatus());
}

void FakeTrainer::MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) {
  FakeEvaluation* const evaluation = cluster_.evaluation;
  cluster_.allreduce->Barrier(
      rank_, "merge",
      [this, evaluation, done = std::move(done)]() mutable {
        MetricValues values;
        values.set_samples(evaluation->scored_samples);
        const std::vector<double>& aucs = cluster_.orders->aucs;
        values.set_auc(evaluation->validations < aucs.size() ? aucs[evaluation->validations] : .5);
        done(values);
      },
      [evaluation] {
        ++evaluation->validations;
        evaluation->scored_samples = 0;
      });
}

void FakeTrainer::BeginCut(CutPlan plan, absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                           absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended) {
  CHECK(!cluster_.evaluation->restored) << "a cut after a restore";
  cluster_.cuts->Begin(rank_, std::move(plan), std::move(done), std::move(ended));
}

void FakeTrainer::AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) {
  cluster_.allreduce->Barrier(rank_, "await", [this, done = std::move(done)]() mutable {
    cluster_.cuts->Await(std::move(done));
  });
}

void FakeTrainer::RestoreModel(const std::string& cut,
                               absl::AnyInvocable<void(absl::Status)> done) {
  cluster_.allreduce->Barrier(rank_, "restore", [this, cut, done = std::move(done)]() mutable {
    if (rank_ == 0) cluster_.record->saved.push_back("restored " + cut);
    cluster_.evaluation->restored = true;
    done(absl::OkStatus());
  });
}

}  // namespace satrap
