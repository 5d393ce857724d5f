#include "nn_worker/report/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/json/json.h"
#include "nn_worker/metrics/metric_names.h"
#include "nn_worker/rank/gradient_norms.h"
#include "proto/report.pb.h"

namespace satrap {
namespace {

// If a window lasts more than this many times as long as the one before, training has stopped for
// lack of data. (A slow step makes all windows long.)
constexpr int64_t kWindowsUntilQuiet = 5;

// Nine digits are enough to tell all floats apart.
std::string TextOf(const google::protobuf::Message& line) { return JsonOf(line, "%.9g"); }

}  // namespace

Progress::Progress(const Executor* clock, std::function<double()> recent_auc,
                   std::function<void(const std::string&)> write_line, uint64_t generation,
                   const RunPosition& position)
    : clock_(clock),
      recent_auc_(std::move(recent_auc)),
      write_line_(std::move(write_line)),
      generation_(generation) {
  progress_.set_epoch(position.epoch());
  progress_.set_step(position.step());
  progress_.set_samples(position.samples());
  if (position.has_gradient_norms()) {
    *progress_.mutable_gradient_norms() = position.gradient_norms();
  }
  if (position.has_plateau()) {
    progress_.set_learning_rate_factor(position.plateau().factor());
    progress_.set_reductions(position.plateau().reductions());
  }
  progress_.set_phase("starting");
  progress_.set_seconds_left(-1);
}

void Progress::OnPhase(absl::string_view phase) {
  MutexLock lock(&mutex_);
  // A window covers training only: an evaluation within it would lower samples per second. The
  // window continues after the evaluation, because an epoch may be shorter than a window.
  const int64_t now_us = clock_->NowUs();
  window_.trained_us = TrainedUs(now_us);
  window_.since_us = now_us;
  progress_.set_phase(std::string(phase));
}

int64_t Progress::TrainedUs(int64_t now_us) const {
  const bool trains = progress_.phase() == "training";
  return window_.trained_us + (trains ? now_us - window_.since_us : 0);
}

void Progress::OnStep(const StepEvent& event) {
  std::string line;
  {
    MutexLock lock(&mutex_);
    progress_.set_epoch(event.epoch);
    progress_.set_step(event.steps);
    progress_.set_samples(progress_.samples() + event.samples);
    progress_.clear_moving_label_rate();
    if (event.moving_label_rate.has_value()) {
      *progress_.mutable_moving_label_rate() = *event.moving_label_rate;
    }
    ++window_.steps;
    window_.samples += event.samples;
    // The mean leaves out steps that are not finite: one infinite loss would hide the others.
    if (event.finite) {
      window_.weight += event.weight;
      window_.loss += event.loss;
    }
    if (event.had_part) {
      ++window_.parts;
      window_.staleness_sum += event.staleness;
      window_.staleness_max = std::max(window_.staleness_max, event.staleness);
    }
    const int64_t now_us = clock_->NowUs();
    if (TrainedUs(now_us) < kWindowUs) return;
    line = EndWindow(now_us);
  }
  // The lock is not held here: writing may be slow, and Snapshot must not wait for a disk.
  write_line_(line);
}

void Progress::OnGradientNorm(double norm, float clip_factor) {
  MutexLock lock(&mutex_);
  AddNorm(norm, clip_factor, progress_.mutable_gradient_norms());
  AddNorm(norm, clip_factor, &window_.norms);
}

std::string Progress::EndWindow(int64_t now_us) {
  last_window_us_ = TrainedUs(now_us);
  const double seconds = static_cast<double>(last_window_us_) * 1e-6;
  progress_.set_samples_per_second(static_cast<double>(window_.samples) / seconds);
  progress_.set_window_loss(window_.weight > 0 ? window_.loss / window_.weight : NAN);
  progress_.set_window_auc(recent_auc_());
  progress_.set_staleness_max(window_.staleness_max);
  progress_.set_staleness_mean(
      window_.parts == 0 ? 0 : static_cast<double>(window_.staleness_sum) / window_.parts);
  const TrainProgress& p = progress_;
  TrainLine line;
  line.set_event("train");
  line.set_generation(generation_);
  line.set_epoch(p.epoch());
  line.set_step(p.step());
  line.set_samples(p.samples());
  line.set_seconds(seconds);
  line.set_samples_per_second(p.samples_per_second());
  line.set_loss(p.window_loss());
  line.set_auc(p.window_auc());
  line.set_staleness_max(p.staleness_max());
  line.set_staleness_mean(p.staleness_mean());
  if (const GradientNorms& norms = window_.norms; norms.steps() > 0) {
    line.set_gradient_norm(norms.sum() / static_cast<double>(norms.steps()));
    line.set_clipped_steps(norms.clipped_steps());
  }
  window_ = Window();
  window_.since_us = now_us;
  return TextOf(line);
}

void Progress::OnEvaluation(const EvaluationEvent& event) {
  const bool valid = event.stream == VALID_STREAM;
  if (valid) {
    MutexLock lock(&mutex_);
    *progress_.mutable_last_valid() = event.values;
    if (event.learning_rate_factor.has_value()) {
      progress_.set_learning_rate_factor(*event.learning_rate_factor);
      progress_.set_reductions(event.reductions);
    }
  }
  EvaluationLine line;
  line.set_event(valid ? "valid" : "test");
  line.set_generation(generation_);
  line.set_epoch(event.epoch);
  line.set_step(event.steps);
  CopyMetrics(event.values, &line);
  line.set_best(event.best);
  if (event.learning_rate_factor.has_value()) {
    line.set_learning_rate_factor(*event.learning_rate_factor);
  }
  write_line_(TextOf(line));
  if (event.reduced && on_reduced_ != nullptr) on_reduced_(event);
}

void Progress::OnCutBegun() {
  MutexLock lock(&mutex_);
  cuts_.set_begun(cuts_.begun() + 1);
  cuts_.set_writing(true);
}

void Progress::OnCutEnded(const CutOutcome& outcome) {
  {
    MutexLock lock(&mutex_);
    if (outcome.committed) {
      cuts_.set_committed(cuts_.committed() + 1);
    } else {
      cuts_.set_abandoned(cuts_.abandoned() + 1);
      cuts_.set_last_abandoned_cause(outcome.cause);
    }
    cuts_.set_writing(cuts_.begun() > cuts_.committed() + cuts_.abandoned());
  }
  CutLine line;
  line.set_event("cut");
  line.set_generation(generation_);
  line.set_cut(outcome.name);
  line.set_committed(outcome.committed);
  line.set_seconds(outcome.seconds);
  line.set_bytes(outcome.bytes);
  line.set_copied_bytes(outcome.copied_bytes);
  write_line_(TextOf(line));
}

CutProgress Progress::Cuts() const {
  MutexLock lock(&mutex_);
  return cuts_;
}

void Progress::SetEndless() {
  MutexLock lock(&mutex_);
  progress_.set_endless(true);
}

void Progress::SetExpectedSamples(uint64_t samples) {
  MutexLock lock(&mutex_);
  progress_.set_expected_samples(samples);
}

TrainProgress Progress::Snapshot() const {
  MutexLock lock(&mutex_);
  TrainProgress snapshot = progress_;
  // Without data no step ends the window, and the rate of the last window would be shown for ever.
  // So the rate is computed from the window that is still open.
  const int64_t window_us = TrainedUs(clock_->NowUs());
  if (snapshot.phase() == "training" && window_us > kWindowsUntilQuiet * last_window_us_) {
    snapshot.set_samples_per_second(static_cast<double>(window_.samples) /
                                    (static_cast<double>(window_us) * 1e-6));
  }
  const double rate = snapshot.samples_per_second();
  if (snapshot.expected_samples() > 0 && rate > 0 && !snapshot.endless()) {
    const uint64_t left =
        snapshot.expected_samples() - std::min(snapshot.samples(), snapshot.expected_samples());
    snapshot.set_seconds_left(static_cast<double>(left) / rate);
  }
  return snapshot;
}

}  // namespace satrap
