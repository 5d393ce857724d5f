#include "nn_worker/rank/testing/fake_trainer.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "nn_worker/rank/testing/fake_part.h"

namespace satrap {
namespace {

struct FakePreparedPart final : PreparedPart {
  FakePreparedPart(uint64_t number, PartInput input) : number(number), input(std::move(input)) {}
  const uint64_t number;
  PartInput input;
};

}  // namespace

std::unique_ptr<PreparedPart> FakeTrainer::Prepare(PartInput part) {
  CHECK(prepared_ - ended_ < kPreparedParts) << "too many parts are prepared";
  if (joined_ > ended_) ++cluster_.record->prepared_during_steps;
  return std::make_unique<FakePreparedPart>(prepared_++, std::move(part));
}

void FakeTrainer::JoinStep(uint64_t step, std::unique_ptr<PreparedPart> part, StepFlags flags,
                           absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) {
  CHECK(!waits_) << "a step is joined before the last one was ended";
  auto joiner = std::make_shared<FakeAllreduce::Joiner>();
  joiner->step = step;
  joiner->flags = flags;
  joiner->done = std::move(done);
  if (part != nullptr) {
    auto* const fake = static_cast<FakePreparedPart*>(part.get());
    CHECK(fake->number == joined_) << "parts are joined in another order than they are prepared";
    ++joined_;
    joiner->part = std::move(fake->input);
    joiner->done = [this,
                    done = std::move(joiner->done)](absl::StatusOr<StepResult> result) mutable {
      ++ended_;
      waits_ = result.ok() && result->dense_squares.has_value();
      done(std::move(result));
    };
  }
  cluster_.executor->PostAfter(cluster_.delay_us, [this, joiner] {
    cluster_.allreduce->JoinStep(rank_, std::move(*joiner));
  });
}

void FakeTrainer::EndStep(double squares, absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) {
  CHECK(std::exchange(waits_, false)) << "EndStep was called, but no step waits for it";
  cluster_.record->ended_steps.push_back(squares);
  cluster_.allreduce->Barrier(rank_, "end", [done = std::move(done)]() mutable {
    StepEnd end;
    end.clip_factor = 0.5f;
    end.loss_scale.emplace().set_scale(8);
    done(end);
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
