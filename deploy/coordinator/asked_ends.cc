#include "deploy/coordinator/asked_ends.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/role/ending.h"
#include "deploy/coordinator/claim/start_position.h"

namespace satrap {

void AskedEnds::AfterStopSeconds(void (AskedEnds::*act)()) {
  executor_->PostAfter(static_cast<int64_t>(job_->stop_seconds() * 1e6),
                       [this, owner = owner_, act] {
                         const std::shared_ptr<void> alive = owner.lock();
                         if (alive != nullptr) (this->*act)();
                       });
}

absl::StatusOr<uint64_t> AskedEnds::Wish(const WishRequest& request) {
  state_->AssertHeld();
  if (state_->end.has_ended()) return state_->end.EndedError();
  // The generation's end is already decided, and is announced once the log has it.
  if (state_->end.is_linking() &&
      !(request.kind() == WishRequest::STOP && state_->wishes.stops())) {
    return state_->end.EndedError();
  }
  if (!takes_cuts() && request.kind() != WishRequest::STOP) {
    return absl::FailedPreconditionError(job_->action() == JobConfig::TRAIN
                                             ? "training is over, so the run takes no more cuts"
                                             : "only a training run takes cuts");
  }
  if (request.kind() == WishRequest::SCALE && !state_->wishes.scales()) {
    RETURN_IF_ERROR(CheckScaleKeepsTraining(
        *job_, request.job(), std::max(state_->train.epoch(), start_.position.epoch()),
        std::max(state_->train.step(), start_.position.step())));
  }
  const bool stopped_before = state_->wishes.stops();
  ASSIGN_OR_RETURN(const uint64_t number, state_->wishes.Add(request, *job_));
  if (request.kind() != WishRequest::STOP || stopped_before) return number;
  if (state_->end.state() == STARTING || !takes_cuts()) {
    StopAtOnce();
  } else {
    AfterStopSeconds(&AskedEnds::StopInTime);
  }
  return number;
}

// This generation has trained nothing that a cut would save, but earlier generations may have
// trained something.
void AskedEnds::StopAtOnce() {
  state_->wishes.FulfilAll();
  if (start_.nothing_lost_before || !takes_cuts()) {
    Ending saved = EndingOf(Ending::ASKED, "stopped on request; nothing is lost");
    saved.set_loss(Ending::NOTHING);
    return state_->end.End(STOPPED, std::move(saved));
  }
  state_->end.End(
      STOPPED,
      EndingOf(Ending::ASKED,
               absl::StrCat("stopped on request before training continued from ",
                            start_.cut.empty() ? "the beginning" : start_.cut,
                            "; what earlier generations have trained after it, if any, is lost")));
}

void AskedEnds::StopInTime() {
  MutexLock lock(&state_->mutex);
  state_->end.EndWithoutLastCut(
      EndingOf(Ending::ASKED,
               absl::StrCat("stopped on request, without a last cut: none was committed within ",
                            job_->stop_seconds(), " s (stop_seconds)")));
}

void AskedEnds::Move(const Ending& how) {
  state_->AssertHeld();
  if (state_->end.has_ended() || state_->end.is_linking()) return;
  if (state_->end.state() == STARTING || !takes_cuts()) {
    // No last cut is needed: training has not begun, or the run takes no cuts.
    return state_->end.EndMoved(how);
  }
  if (state_->wishes.AddMove(how)) AfterStopSeconds(&AskedEnds::MoveInTime);
}

void AskedEnds::MoveInTime() {
  MutexLock lock(&state_->mutex);
  // If a stop has joined the move, the stop's own timer (StopInTime) ends the generation.
  if (state_->wishes.stops()) return;
  Ending how = state_->wishes.move();
  absl::StrAppend(how.mutable_text(), ", without a last cut: none was committed within ",
                  job_->stop_seconds(), " s (stop_seconds)");
  state_->end.EndMoveWithoutCut(std::move(how));
}

}  // namespace satrap
