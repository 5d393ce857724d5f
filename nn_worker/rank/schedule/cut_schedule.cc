#include "nn_worker/rank/schedule/cut_schedule.h"

#include <algorithm>

namespace satrap {
namespace {

// If the clock decides when a cut begins, the time since the beginning of the previous cut is at
// least this many times the time that writing the previous cut took. So writing takes at most a
// quarter of the time, however large the tables are.
constexpr double kWritingTimesBetweenCuts = 4;

}  // namespace

void CutSchedule::OnWish(const CutWish& wish) {
  newest_wish_ = std::max(newest_wish_, wish.number());
  if (wish.leave()) leave_wish_ = std::max(leave_wish_, wish.number());
}

bool CutSchedule::IsDue(uint64_t step, bool counts, int64_t now_us) const {
  if (writing_) return false;
  if (newest_wish_ > fulfilled_wish_) return true;
  const auto every = static_cast<uint64_t>(config_.every_steps());
  const uint64_t after = step + (counts ? 1 : 0);
  if (every > 0 && after / every > last_step_ / every) return true;
  // Without this check, a run that waits for data would write the same cut again and again.
  if (config_.every_seconds() <= 0 || step == last_step_) return false;
  const double since_seconds = static_cast<double>(now_us - last_begun_us_) * 1e-6;
  return since_seconds >=
         std::max(config_.every_seconds(), kWritingTimesBetweenCuts * last_writing_seconds_);
}

void CutSchedule::OnBegun(int64_t now_us, CutPlan* plan) {
  number_ = plan->number;
  writing_ = true;
  last_step_ = plan->position.step();
  last_begun_us_ = now_us;
  begun_wish_ = newest_wish_ > fulfilled_wish_ ? newest_wish_ : 0;
  plan->wish = begun_wish_;
  plan->leave = leave_wish_ > fulfilled_wish_;
}

// The outcome of a cut before the newest one says nothing about the wish that the newest cut
// fulfils.
void CutSchedule::OnEnded(uint64_t number, const CutOutcome& outcome) {
  last_writing_seconds_ = outcome.seconds;
  if (number != number_) return;
  writing_ = false;
  if (outcome.committed && begun_wish_ > 0) fulfilled_wish_ = begun_wish_;
}

}  // namespace satrap
