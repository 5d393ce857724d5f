#include "deploy/report/run_warnings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/count_text.h"
#include "nn_worker/metrics/doubtful_metrics.h"

namespace satrap {
namespace {

std::string MovingText(const MovingLabelRate& moving) {
  return absl::StrFormat(
      "the label rate drifts with the position of the records: from %.3g %% to %.3g %% in %d "
      "windows of epoch 1, and the last records count most. Shuffle more (data.shuffle_rows, or "
      "the files themselves); if they are in the order of time, keep that order and use later "
      "records for validation and test",
      100 * moving.lowest(), 100 * moving.highest(), moving.windows());
}

std::string HangingText(const TrainProgress& progress) {
  return absl::StrFormat(
      "no line of metrics.jsonl could be written to the run's disk for %.0f s: the disk hangs. "
      "Training continues, and will wait at the next cut",
      progress.metrics_file_hangs_seconds());
}

std::string DroppedText(const TrainProgress& progress) {
  return absl::StrCat("metrics.jsonl lacks ", Counted(progress.metrics_lines_dropped(), "line"),
                      " that could not be written to the run's disk");
}

}  // namespace

std::vector<std::string> WarningsOf(const JobConfig& job, const RunResult& result) {
  std::vector<std::string> warnings;
  if (result.has_moving_label_rate()) warnings.push_back(MovingText(result.moving_label_rate()));
  absl::optional<double> rate;
  if (result.has_train_label_rate()) rate = result.train_label_rate();
  const auto add = [&](const char* pass, const MetricValues& values) {
    for (std::string& line : DoubtfulMetrics(job, pass, values, rate)) {
      warnings.push_back(std::move(line));
    }
  };
  if (result.has_valid()) add("validation", result.valid());
  if (result.has_test()) add("test", result.test());
  return warnings;
}

std::vector<std::string> WarningsOf(const TrainProgress& progress) {
  return ProgressWarnings(JobConfig()).New(progress);
}

std::vector<std::string> ProgressWarnings::New(const TrainProgress& progress) {
  std::vector<std::string> warnings;
  if (progress.has_moving_label_rate() && !std::exchange(moving_told_, true)) {
    warnings.push_back(MovingText(progress.moving_label_rate()));
  }
  if (progress.has_metrics_file_hangs_seconds() && !std::exchange(hanging_told_, true)) {
    warnings.push_back(HangingText(progress));
  }
  if (progress.metrics_lines_dropped() > 0 && !std::exchange(dropped_told_, true)) {
    warnings.push_back(DroppedText(progress));
  }
  if (progress.has_last_valid()) JudgeValidation(progress.last_valid(), &warnings);
  return warnings;
}

void ProgressWarnings::JudgeValidation(const MetricValues& values,
                                       std::vector<std::string>* warnings) {
  std::string validation = values.SerializeAsString();
  if (validation == last_validation_) return;
  last_validation_ = std::move(validation);
  std::vector<std::string> doubts =
      DoubtfulMetrics(job_, "validation", values, /*train_label_rate=*/absl::nullopt);
  doubtful_validations_ = doubts.empty() ? 0 : doubtful_validations_ + 1;
  if (doubtful_validations_ < 2 || std::exchange(validation_told_, true)) return;
  for (std::string& doubt : doubts) warnings->push_back(std::move(doubt));
}

std::string AbandonedCuts::New(const StatusAnswer& status) {
  if (status.generation() != generation_) known_ = 0;
  generation_ = status.generation();
  const bool is_new = status.cuts().abandoned() > known_;
  known_ = status.cuts().abandoned();
  return is_new ? absl::StrCat("a cut was abandoned, and training continues: ",
                               status.cuts().last_abandoned_cause())
                : "";
}

}  // namespace satrap
