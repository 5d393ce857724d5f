// Measures how good the predictions of records were before they were trained on: AUC, log loss and
// calibration over windows of samples and over windows of data time
// (EvaluationConfig.window_samples and window_data_seconds). Data that a model has not seen yet
// serves as a test set, the only one that an endless run has. A rank scores its own parts; no
// collective is needed. The scores are those of the training pass, so dropout and batch
// normalisation act on them as in training.
//
// Windows of samples count the run's samples over all ranks, and end with the first step that
// reaches a multiple of window_samples. Windows of data time are [k w, (k + 1) w) of the records'
// own times. The median of a part's times decides to which window the whole part belongs. So a
// record whose own time is far from this median counts in the window of the other records. A window
// ends when the first part that belongs to a later window comes. A part that belongs to an earlier
// window is late. It counts in the open window, however late it is, because a run that catches up
// alternates between topic partitions that are hours apart. So only one window of each kind is open
// at a time. The window of data time moves back in two cases: in a new epoch, because data is then
// read again, and after kOlderInARow late parts in a row, because a part in the far future must not
// hold a window open for ever.
//
// Windows that no step has ended are not reported. The first window of a generation covers only the
// samples that this generation has trained. Memory is constant, and no sample costs an allocation.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_METRICS_SCORE_WINDOWS_H_
#define SATRAP_NN_WORKER_METRICS_SCORE_WINDOWS_H_

#include <cstdint>
#include <functional>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "nn_worker/metrics/log_loss.h"
#include "nn_worker/metrics/score_histogram.h"
#include "nn_worker/metrics/tail_calibration.h"
#include "proto/job.pb.h"

namespace satrap {

// A window that has ended.
struct ScoreWindow {
  bool by_data_time = false;
  // The window is [begin, end). For a window by samples these are counts of the run's samples over
  // all ranks; for a window by data time they are ms since 1970.
  int64_t begin = 0;
  int64_t end = 0;
  uint64_t steps = 0;    // that counted when it ended
  uint64_t samples = 0;  // that this rank has scored
  // NaN if the value is not defined: the AUC needs a sample of each class, and the calibration a
  // positive.
  double auc = 0;
  double logloss = 0;
  double calibration = 0;
};

class ScoreWindows {
 public:
  static constexpr int kOlderInARow = 1000;
  using Sink = std::function<void(const ScoreWindow&)>;

  // This rank's part of a step. If weights or mask are empty, they are all 1. A sample is ignored
  // if its mask is 0, or if its logit is not finite. Empty times mean that the times are not known.
  struct Part {
    absl::Span<const float> logits;
    absl::Span<const float> labels;
    absl::Span<const float> weights;
    absl::Span<const float> mask;
    absl::Span<const int64_t> times;  // ms since 1970
    uint32_t epoch = 0;               // of these records
  };

  // `samples` is the number of samples that the run has trained so far. AddStep calls `sink` for
  // each window that ends.
  ScoreWindows(const EvaluationConfig& config, uint64_t samples, Sink sink);

  // Adds this rank's part of a step that counted. `steps` is the number of steps that the run has
  // made, including this one, and `samples` is the number of samples of this step over all ranks.
  void AddStep(uint64_t steps, uint64_t samples, const Part& part);

  // The calibration of all samples that were added, whatever their windows.
  TailCalibration::Value Tail() const { return tail_.Compute(); }

 private:
  struct Scores {
    ScoreHistogram histogram;
    LogLoss losses;
  };

  // If the part lies after the current window, or before it and the window moves back (see the top
  // of this file), ends the current window and opens that of the part.
  void MoveDataWindow(uint64_t steps, const Part& part);
  void AddScores(const Part& part, bool in_data_time);
  void End(uint64_t steps, Scores* scores, ScoreWindow window);

  const uint64_t window_samples_;  // 0: no such windows
  const int64_t window_ms_;        // 0: no such windows
  const Sink sink_;

  uint64_t samples_;
  uint64_t first_sample_;  // of the current window
  Scores by_samples_;
  absl::optional<int64_t> data_window_;  // k of the current one
  uint32_t epoch_ = 0;                   // of the newest part in it
  int older_in_a_row_ = 0;               // parts
  Scores by_data_time_;
  TailCalibration tail_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_SCORE_WINDOWS_H_
