#include "nn_worker/report/step_times.h"

#include <algorithm>
#include <utility>

#include "common/json/json.h"
#include "proto/report.pb.h"

namespace satrap {

StepTimes::StepTimes(const Executor* clock, uint64_t generation,
                     std::function<void(uint64_t)> first_step,
                     std::function<void(const std::string&)> write_line, RankObserver* next)
    : clock_(clock),
      generation_(generation),
      first_step_(std::move(first_step)),
      write_line_(std::move(write_line)),
      next_(next) {}

void StepTimes::OnPhase(absl::string_view phase) {
  // The time between the steps around an evaluation, or around a cut that is waited for, is not the
  // time of a step.
  if (phase != "training") last_us_.reset();
  next_->OnPhase(phase);
}

void StepTimes::OnCutPause(double seconds) {
  pause_seconds_ = seconds;
  next_->OnCutPause(seconds);
}

void StepTimes::OnStep(const StepEvent& event) {
  const int64_t now_us = clock_->NowUs();
  if (!any_step_) first_step_(event.steps);
  any_step_ = true;
  if (last_us_.has_value()) {
    const int64_t gap_us = now_us - *last_us_;
    if (!pause_seconds_.has_value()) {
      times_us_[num_times_++ % kSteps] = gap_us;
    } else {
      PauseLine line;
      line.set_event("pause");
      line.set_generation(generation_);
      line.set_step(event.steps);
      line.set_seconds(*pause_seconds_);
      line.set_gap_seconds(static_cast<double>(gap_us) * 1e-6);
      line.set_usual_seconds(static_cast<double>(MedianUs()) * 1e-6);
      write_line_(JsonOf(line, "%.6f"));
    }
  }
  pause_seconds_.reset();
  last_us_ = now_us;
  next_->OnStep(event);
}

int64_t StepTimes::MedianUs() const {
  const size_t n = std::min(num_times_, kSteps);
  if (n == 0) return 0;
  std::array<int64_t, kSteps> sorted = times_us_;
  std::nth_element(sorted.begin(), sorted.begin() + n / 2, sorted.begin() + n);
  return sorted[n / 2];
}

}  // namespace satrap
