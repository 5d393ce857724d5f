#include "nn_worker/rank/rank_cuts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/run_log.h"

namespace satrap {

RankCuts::RankCuts(const RankOptions& options, Executor* executor, StepTrainer* trainer,
                   RankObserver* observer, FailureLatch* failure, Engine engine)
    : rank_(options.rank),
      generation_(options.envelope.generation()),
      executor_(executor),
      trainer_(trainer),
      observer_(observer),
      failure_(failure),
      engine_(std::move(engine)),
      schedule_(options.checkpoint, options.position.step()) {}

bool RankCuts::IsDue(uint64_t step, bool counts) const {
  return rank_ == 0 && schedule_.IsDue(step, counts, executor_->NowUs());
}

absl::Status RankCuts::AddReleased(uint32_t epoch, const Provenance& provenance) {
  for (const ProvenanceRange& range : provenance) {
    const absl::Status status = released_.Add(epoch, range);
    if (status.ok()) continue;
    // A restart would meet the same contradiction, so the status code must not lead to a restart.
    return absl::DataLossError(absl::StrCat("records were trained twice: ", status.message()));
  }
  return absl::OkStatus();
}

// Rank 0 raises the cut flag in every step until the ranks are idle. The pause of training is
// measured from the first step in which the flag is raised.
void RankCuts::OnDecided() {
  if (!decided_us_.has_value()) decided_us_ = executor_->NowUs();
}

void RankCuts::OnAllIdle() {
  due_ = decided_us_.has_value();
  until_idle_us_ = due_ ? executor_->NowUs() - *decided_us_ : 0;
  decided_us_.reset();
}

void RankCuts::Take(bool best, bool last) {
  best_ = best;
  last_ = last;
  begun_us_ = executor_->NowUs();
  Begin();
}

// Together with the plan, this rank hands over the records that it has released, and forgets them.
// It does so even if the cut will be abandoned, because rank 0 keeps these records.
void RankCuts::Begin() {
  CutPlan plan;
  plan.number = ++number_;
  newest_ = CutName(generation_, plan.number);
  plan.best = best_;
  plan.last = last_;
  plan.position = engine_.position(newest_);
  plan.released = released_.ToState();
  released_ = Ledger();
  if (rank_ == 0) schedule_.OnBegun(executor_->NowUs(), &plan);
  observer_->OnCutBegun();
  trainer_->BeginCut(
      std::move(plan),
      failure_->WhenGood<CutMarked>([this](CutMarked marked) { OnMarked(marked); }),
      failure_->WhenGood<CutOutcome>(
          [this, number = number_](const CutOutcome& outcome) { OnEnded(number, outcome); }));
}

void RankCuts::OnMarked(CutMarked marked) {
  leaving_ = marked.leave;
  if (!marked.waits) return GoOn();
  engine_.set_phase("saving");
  trainer_->AwaitCut(failure_->WhenGood<bool>([this](bool committed) { OnAwaited(committed); }));
}

// Runs on rank 0 only. For a cut that ranks wait for, it runs before OnAwaited.
void RankCuts::OnEnded(uint64_t number, const CutOutcome& outcome) {
  observer_->OnCutEnded(outcome);
  schedule_.OnEnded(number, outcome);
}

// An abandoned cut is begun again with the same tables and the same position, because all ranks
// have waited. The trainer (CutEngine) limits how many cuts in a row may be abandoned.
void RankCuts::OnAwaited(bool committed) {
  if (!committed) {
    Begin();
  } else if (leaving_) {
    engine_.set_phase("leaving");
  } else {
    GoOn();
  }
}

void RankCuts::GoOn() {
  // No training waits for the last cut, so this cut causes no pause.
  if (!last_) {
    const int64_t pause_us = until_idle_us_ + executor_->NowUs() - begun_us_;
    observer_->OnCutPause(static_cast<double>(pause_us) * 1e-6);
  }
  engine_.go_on();
}

}  // namespace satrap
