#include "nn_worker/report/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nn_worker/metrics/metric_names.h"
#include "nn_worker/rank/gradient_norms.h"
#include "nn_worker/report/json_number.h"

namespace satrap {
namespace {

// A window that is this many times as long as the one before has met a quiet time. (A slow step
// makes all windows long.)
constexpr int64_t kWindowsUntilQuiet = 5;

// The fields of a line, without the braces around them.
std::string MetricFields(const MetricValues& values) {
  std::string fields = absl::StrCat("\"samples\":", values.samples());
  VisitMetrics(
      values,
      [&fields](const char* name, double value) {
        absl::StrAppend(&fields, ",\"", name, "\":", JsonNumber(value));
      },
      [&fields](const char* name, uint64_t value) {
        absl::StrAppend(&fields, ",\"", name, "\":", value);
      });
  return fields;
}

}  // namespace

Progress::Progress(const Executor* clock, std::function<double()> window_auc,
                   std::function<void(const std::string&)> write_line, uint64_t generation,
                   const RunPosition& position)
    : clock_(clock),
      window_auc_(std::move(window_auc)),
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
  progress_.set_phase(std::string(phase));
  // A window covers training only: an evaluation within it would lower samples per second.
  window_ = Window();
  window_.begin_us = clock_->NowUs();
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
    if (now_us - window_.begin_us < kWindowUs) return;
    line = EndWindow(now_us);
  }
  // Without the lock: writing may be slow, and Snapshot must not wait for a disk.
  write_line_(line);
}

void Progress::OnGradientNorm(double norm, float clip_factor) {
  MutexLock lock(&mutex_);
  AddNorm(norm, clip_factor, progress_.mutable_gradient_norms());
  AddNorm(norm, clip_factor, &window_.norms);
}

std::string Progress::EndWindow(int64_t now_us) {
  const double seconds = static_cast<double>(now_us - window_.begin_us) * 1e-6;
  progress_.set_samples_per_second(static_cast<double>(window_.samples) / seconds);
  progress_.set_window_loss(window_.weight > 0 ? window_.loss / window_.weight : NAN);
  progress_.set_window_auc(window_auc_());
  progress_.set_staleness_max(window_.staleness_max);
  progress_.set_staleness_mean(
      window_.parts == 0 ? 0 : static_cast<double>(window_.staleness_sum) / window_.parts);
  const TrainProgress& p = progress_;
  std::string line = absl::StrCat(
      "{\"event\":\"train\",\"generation\":", generation_, ",\"epoch\":", p.epoch(),
      ",\"step\":", p.step(), ",\"samples\":", p.samples(), ",\"seconds\":", JsonNumber(seconds),
      ",\"samples_per_second\":", JsonNumber(p.samples_per_second()),
      ",\"loss\":", JsonNumber(p.window_loss()), ",\"auc\":", JsonNumber(p.window_auc()));
  absl::StrAppend(&line, ",\"staleness_max\":", p.staleness_max(),
                  ",\"staleness_mean\":", JsonNumber(p.staleness_mean()));
  if (const GradientNorms& norms = window_.norms; norms.steps() > 0) {
    absl::StrAppend(
        &line, ",\"gradient_norm\":", JsonNumber(norms.sum() / static_cast<double>(norms.steps())),
        ",\"clipped_steps\":", norms.clipped_steps());
  }
  line += "}";
  last_window_us_ = now_us - window_.begin_us;
  window_ = Window();
  window_.begin_us = now_us;
  return line;
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
  std::string line = absl::StrCat("{\"event\":\"", valid ? "valid" : "test",
                                  "\",\"generation\":", generation_, ",\"epoch\":", event.epoch,
                                  ",\"step\":", event.steps, ",", MetricFields(event.values));
  if (event.values.tasks_size() > 0) {
    const auto task_fields = [](std::string* out, const TaskMetricValues& task) {
      absl::StrAppend(out, "\"", task.name(), "\":{", MetricFields(task.values()), "}");
    };
    absl::StrAppend(&line, ",\"tasks\":{", absl::StrJoin(event.values.tasks(), ",", task_fields),
                    "}");
  }
  absl::StrAppend(&line, ",\"best\":", event.best ? "true" : "false");
  if (event.learning_rate_factor.has_value()) {
    absl::StrAppend(&line, ",\"learning_rate_factor\":", JsonNumber(*event.learning_rate_factor));
  }
  write_line_(line + "}");
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
  write_line_(absl::StrCat("{\"event\":\"cut\",\"generation\":", generation_, ",\"cut\":\"",
                           outcome.name, "\",\"committed\":", outcome.committed ? "true" : "false",
                           ",\"seconds\":", JsonNumber(outcome.seconds), ",\"bytes\":",
                           outcome.bytes, ",\"copied_bytes\":", outcome.copied_bytes, "}"));
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
  const int64_t window_us = clock_->NowUs() - window_.begin_us;
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
