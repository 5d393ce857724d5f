#include "nn_worker/report/score_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nn_worker/report/json_number.h"

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

  std::string line = absl::StrCat("{\"event\":\"window\",\"generation\":", generation_,
                                  ",\"by\":\"", kind, "\",\"step\":", window.steps);
  if (window.by_data_time) {
    absl::StrAppend(&line, ",\"begin_ms\":", window.begin, ",\"end_ms\":", window.end);
  } else {
    absl::StrAppend(&line, ",\"first_sample\":", window.begin, ",\"last_sample\":", window.end - 1);
  }
  absl::StrAppend(&line, ",\"samples\":", window.samples, ",\"auc\":", JsonNumber(window.auc),
                  ",\"logloss\":", JsonNumber(window.logloss),
                  ",\"calibration\":", JsonNumber(window.calibration), "}");
  write_line_(line);
}

}  // namespace satrap
