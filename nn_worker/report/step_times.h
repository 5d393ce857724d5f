// Times the steps that count. Reports the first such step of this generation, and writes a line of
// metrics.jsonl for each pause that a cut made (docs/formats.md). Every event is passed on.
//
// The gap of a pause is the time from the last counted step before the cut to the first one after
// it. The gap minus the time of a usual step is the time in which training stood still for the cut.
// The time of a usual step is the median over the last steps between which nothing but training
// happened.
//
// RankObserver states how its methods are called.

#ifndef SATRAP_NN_WORKER_REPORT_STEP_TIMES_H_
#define SATRAP_NN_WORKER_REPORT_STEP_TIMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/types/optional.h"
#include "common/thread/executor.h"
#include "nn_worker/rank/rank_observer.h"

namespace satrap {

class StepTimes final : public RankObserver {
 public:
  // The number of steps that the median is taken over.
  static constexpr size_t kSteps = 255;

  // `first_step` is called with the number of the first step that counts, and `write_line` with
  // each line, without the newline. Nothing is owned.
  StepTimes(const Executor* clock, uint64_t generation, std::function<void(uint64_t)> first_step,
            std::function<void(const std::string&)> write_line, RankObserver* next);

  void OnPhase(absl::string_view phase) override;
  void OnStep(const StepEvent& event) override;
  void OnGradientNorm(double norm, float clip_factor) override {
    next_->OnGradientNorm(norm, clip_factor);
  }
  void OnEvaluation(const EvaluationEvent& event) override { next_->OnEvaluation(event); }
  void OnCutBegun() override { next_->OnCutBegun(); }
  void OnCutPause(double seconds) override;
  void OnCutEnded(const CutOutcome& outcome) override { next_->OnCutEnded(outcome); }

 private:
  // The median of the last steps; 0 before the second one.
  int64_t MedianUs() const;

  const Executor* const clock_;
  const uint64_t generation_;
  const std::function<void(uint64_t)> first_step_;
  const std::function<void(const std::string&)> write_line_;
  RankObserver* const next_;
  bool any_step_ = false;
  absl::optional<int64_t> last_us_;       // of the last step, if only training has happened since
  absl::optional<double> pause_seconds_;  // of a cut since the last step
  std::array<int64_t, kSteps> times_us_;  // a ring
  size_t num_times_ = 0;                  // ever put into it
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_STEP_TIMES_H_
