#include "nn_worker/report/score_report.h"

#include <utility>

#include "common/json/json.h"
#include "proto/report.pb.h"

namespace satrap {

ScoreReport::ScoreReport(MetricsRegistry* registry, uint64_t generation,
                         std::function<void(const std::string&)> write_line)
    : registry_(registry), generation_(generation), write_line_(std::move(write_line)) {}

void ScoreReport::Report(const ScoreWindow& window) {
  const char* kind = window.by_data_time ? "data_time" : "samples";
  // A gauge appears with the first window of its kind: before that it has no value.
  const auto set = [&](const char* name, const char* help, double value) {
    registry_->AddGauge(name, help, {{"by", kind}})->Set(value);
  };
  set("satrap_window_samples", "Samples of the last window that this rank has scored",
      static_cast<double>(window.samples));
  set("satrap_window_auc", "AUC of the last window, before training on it", window.auc);
  set("satrap_window_logloss", "Log loss of the last window, before training on it",
      window.logloss);
  set("satrap_window_calibration", "Predicted over actual positives of the last window",
      window.calibration);

  WindowLine line;
  line.set_event("window");
  line.set_generation(generation_);
  line.set_by(kind);
  line.set_step(window.steps);
  if (window.by_data_time) {
    line.set_begin_ms(window.begin);
    line.set_end_ms(window.end);
  } else {
    line.set_first_sample(window.begin);
    line.set_last_sample(window.end - 1);
  }
  line.set_samples(window.samples);
  line.set_auc(window.auc);
  line.set_logloss(window.logloss);
  line.set_calibration(window.calibration);
  write_line_(JsonOf(line, "%.9g"));
}

}  // namespace satrap
