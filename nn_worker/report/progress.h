// Turns the events of a rank into the figures of the last progress window, which heartbeats carry,
// and into the lines of metrics.jsonl.
//
// metrics.jsonl has one JSON object per line: {"event":"train",...} for each window with steps,
// {"event":"valid"|"test",...} for each evaluation, {"event":"cut",...} for each cut that has
// ended. docs/formats.md lists the fields. All generations write to one file; steps that were lost
// with a generation appear again in the next.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_REPORT_PROGRESS_H_
#define SATRAP_NN_WORKER_REPORT_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "nn_worker/rank/rank_observer.h"
#include "proto/control.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class Progress final : public RankObserver {
 public:
  static constexpr int64_t kWindowUs = 1'000'000;

  // `recent_auc` gives the AUC of this rank's last samples; NaN unless these have both classes.
  // `write_line` is called with each line of metrics.jsonl, without the newline. `clock` is not
  // owned. Counts continue from `position`.
  Progress(const Executor* clock, std::function<double()> recent_auc,
           std::function<void(const std::string&)> write_line, uint64_t generation = 1,
           const RunPosition& position = RunPosition());

  void OnPhase(absl::string_view phase) override;
  void OnStep(const StepEvent& event) override;
  void OnGradientNorm(double norm, float clip_factor) override;
  void OnEvaluation(const EvaluationEvent& event) override;
  void OnCutBegun() override;
  void OnCutEnded(const CutOutcome& outcome) override;

  // The samples of the whole run, from which the time left is estimated. 0: not known.
  void SetExpectedSamples(uint64_t samples);

  // Called with each validation that has lowered the learning rates. REQUIRES: before any event
  void SetReductionSink(std::function<void(const EvaluationEvent&)> on_reduced) {
    on_reduced_ = std::move(on_reduced);
  }

  // Call if the stream has no end: then no time left is estimated, not even with max_steps.
  void SetEndless();

  // The figures of the last full window, and the totals up to now. The rate falls while no data
  // comes.
  TrainProgress Snapshot() const;
  // Counts of this generation. Rank 0 only.
  CutProgress Cuts() const;

 private:
  struct Window {
    int64_t trained_us = 0;  // the training before `since_us`
    int64_t since_us = 0;    // the begin of the window or, later in it, of the phase
    uint64_t steps = 0;
    uint64_t samples = 0;
    double weight = 0;  // of the steps that were finite; so is `loss`
    double loss = 0;
    uint64_t parts = 0;
    uint64_t staleness_sum = 0;
    int staleness_max = 0;
    GradientNorms norms;
  };

  // How long the window has lasted, counting only the phase "training".
  int64_t TrainedUs(int64_t now_us) const REQUIRES(mutex_);

  // Closes the window, begins the next one, and returns the line of the closed window.
  std::string EndWindow(int64_t now_us) REQUIRES(mutex_);

  const Executor* const clock_;
  const std::function<double()> recent_auc_;
  const std::function<void(const std::string&)> write_line_;
  const uint64_t generation_;
  std::function<void(const EvaluationEvent&)> on_reduced_;

  mutable Mutex mutex_;
  TrainProgress progress_ GUARDED_BY(mutex_);
  Window window_ GUARDED_BY(mutex_);
  int64_t last_window_us_ GUARDED_BY(mutex_) = kWindowUs;
  CutProgress cuts_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_PROGRESS_H_
