// RankEngine's cuts, and the position that it hands over in them.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/run_log.h"
#include "nn_worker/rank/rank_engine.h"
#include "nn_worker/rank/rank_engine_callbacks.h"

namespace satrap {

absl::Status RankEngine::CheckPosition() const {
  const RunPosition& position = options_.position;
  if (!options_.ordered || position.lanes_size() == 0) return absl::OkStatus();
  if (position.lanes_size() == options_.lanes &&
      position.lane_turn() < static_cast<uint32_t>(options_.lanes)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the cut that training goes on from has ", position.lanes_size(),
                   " lanes and the turn of lane ", position.lane_turn(), ", and the job has ",
                   options_.lanes, " lanes"));
}

RunPosition RankEngine::Position() const {
  RunPosition position;
  position.set_epoch(epoch_ended_ ? epoch_ + 1 : epoch_);
  position.set_step(step_);
  position.set_samples(result_.samples());
  position.set_next(next_ == Next::kFinish ? RunPosition::FINISH : RunPosition::RESUME);
  if (validated_step_.has_value()) position.set_validated_step(*validated_step_);
  if (best_validation_.has_value()) *position.mutable_best() = *best_validation_;
  position.set_validations_without_best(static_cast<uint32_t>(best_.without_best()));
  position.set_stopped_early(result_.stopped_early());
  position.set_skipped_steps(result_.skipped_steps());
  position.set_skipped_steps_in_a_row(skipped_in_a_row_);
  if (pipeline_ == nullptr) {
    *position.mutable_lanes() = options_.position.lanes();
    position.set_lane_turn(options_.position.lane_turn());
  } else if (!epoch_ended_) {
    pipeline_->FillPosition(&position);
  }
  position.set_train_seconds(static_cast<double>(trained_us_) * 1e-6);
  return position;
}

void RankEngine::CutIfDue() {
  if (cut_due_ || new_best_ || next_ == Next::kFinish) {
    BeginCut();
  } else {
    GoOn();
  }
}

// Every rank counts the same cuts, so all know the name of each, and the best one's goes into its
// own position. An abandoned cut is begun again under the next number.
void RankEngine::BeginCut() {
  CutPlan plan;
  plan.number = ++cuts_begun_;
  last_cut_ = CutName(options_.envelope.generation(), plan.number);
  plan.best = new_best_;
  plan.last = next_ == Next::kFinish;
  if (plan.best) best_validation_->set_cut(last_cut_);
  plan.position = Position();
  plan.released = released_.ToState();
  released_ = Ledger();
  if (!cut_begun_us_.has_value()) cut_begun_us_ = executor_->NowUs();
  if (options_.rank == 0) schedule_.OnBegun(executor_->NowUs(), &plan);
  observer_->OnCutBegun();
  trainer_->BeginCut(std::move(plan), WhenGood<CutMarked>(&RankEngine::OnCutMarked),
                     [this, number = cuts_begun_](absl::StatusOr<CutOutcome> outcome) {
                       executor_->Post([this, number, outcome = std::move(outcome)] {
                         if (!outcome.ok()) Fail(outcome.status());
                         if (!failed_) OnCutEnded(number, *outcome);
                       });
                     });
}

void RankEngine::OnCutMarked(CutMarked marked) {
  leaving_ = marked.leave;
  if (marked.waits) {
    SetPhase("saving");
    trainer_->AwaitCut(WhenGood<bool>(&RankEngine::OnCutAwaited));
  } else {
    GoOn();
  }
}

// On rank 0. A cut that was waited for has ended here before OnCutAwaited.
void RankEngine::OnCutEnded(uint64_t number, const CutOutcome& outcome) {
  observer_->OnCutEnded(outcome);
  schedule_.OnEnded(number, outcome);
}

// Tables and position are still those of the abandoned cut, because all ranks have waited. How often
// in a row a cut may be abandoned is the trainer's to say (CutEngine).
void RankEngine::OnCutAwaited(bool committed) {
  if (!committed) {
    BeginCut();
  } else if (leaving_) {
    SetPhase("leaving");
  } else {
    GoOn();
  }
}

void RankEngine::GoOn() {
  if (cut_begun_us_.has_value() && next_ != Next::kFinish) {
    const int64_t pause_us = until_idle_us_ + executor_->NowUs() - *cut_begun_us_;
    observer_->OnCutPause(static_cast<double>(pause_us) * 1e-6);
  }
  cut_begun_us_.reset();
  cut_due_ = new_best_ = false;
  switch (next_) {
    case Next::kResume:
      ResumeTraining();
      return;
    case Next::kNextEpoch:
      BeginEpoch(epoch_ + 1);
      return;
    case Next::kFinish:
      FinishTraining();
      return;
  }
}

}  // namespace satrap
