#include "nn_worker/metrics/doubtful_metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/count_text.h"

namespace satrap {
namespace {

constexpr uint64_t kLeastSamplesOfAClass = 100;
constexpr double kMostEntropy = 1;
constexpr double kLeastAuc = .45;
constexpr double kLeastCalibration = .5;
constexpr double kMostCalibration = 2;
constexpr size_t kNamedColumns = 5;
// Learning rates that are too high, or too many epochs, cause an entropy below this value. A larger
// entropy has a different cause.
constexpr double kHugeEntropy = 3;

std::vector<std::string> WhatIsDoubtful(const MetricValues& values) {
  std::vector<std::string> doubts;
  // A value that is not defined is NaN, and comparisons with NaN are false.
  if (values.has_normalised_entropy() && values.normalised_entropy() > kMostEntropy) {
    doubts.push_back(absl::StrFormat(
        "NE %.4g is above 1, which is worse than predicting the same probability for all records",
        values.normalised_entropy()));
  }
  if (values.has_auc() && values.auc() < kLeastAuc) {
    doubts.push_back(absl::StrFormat("AUC %.4f is below .45, worse than chance", values.auc()));
  }
  if (values.has_calibration() &&
      (values.calibration() < kLeastCalibration || values.calibration() > kMostCalibration)) {
    doubts.push_back(absl::StrFormat("calibration %.4g is outside [.5, 2]", values.calibration()));
  }
  return doubts;
}

// The numerics that reach the network without a transformation. A synthetic log makes its own
// numerics, so it has none of these.
std::vector<std::string> RawNumerics(const DataConfig& data) {
  std::vector<std::string> names;
  if (data.has_synthetic()) return names;
  for (const NumericConfig& numeric : data.numerics()) {
    if (numeric.transform() == NumericConfig::IDENTITY) names.push_back(numeric.name());
  }
  return names;
}

// Features whose ids come with values. The ids' rows are multiplied by these values.
std::vector<std::string> FeaturesWithValues(const DataConfig& data) {
  std::vector<std::string> names;
  for (const FeatureConfig& feature : data.features()) {
    bool has_values = data.has_libsvm() || data.has_libffm();
    for (const ColumnConfig& column : data.csv().columns()) {
      if (column.name() == (feature.column().empty() ? feature.name() : feature.column())) {
        has_values = !column.value_separator().empty();
      }
    }
    if (has_values) names.push_back(feature.name());
  }
  return names;
}

std::string NamesOf(const std::vector<std::string>& names) {
  const size_t named = std::min(names.size(), kNamedColumns);
  std::string text =
      absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(named), ", ");
  if (names.size() > named) absl::StrAppend(&text, " and ", names.size() - named, " more");
  return text;
}

std::string LikelyCause(const JobConfig& job, const MetricValues& values, bool calibration_is_off,
                        absl::optional<double> train_label_rate) {
  const double rate =
      static_cast<double>(values.positives()) / static_cast<double>(values.samples());
  if (train_label_rate.has_value() && (rate > kMostCalibration * *train_label_rate ||
                                       rate < kLeastCalibration * *train_label_rate)) {
    return absl::StrFormat(
        "%.3g %% of its labels are positive, but %.3g %% of the labels of the training data: the "
        "two data sets were sampled differently",
        100 * rate, 100 * *train_label_rate);
  }
  const std::vector<std::string> raw = RawNumerics(job.data());
  if (!raw.empty()) {
    return absl::StrCat("large values of ", NamesOf(raw),
                        ", which reach the network as they are: give them a `transform` (LOG1P or "
                        "STANDARDISE)");
  }
  const std::vector<std::string> with_values = FeaturesWithValues(job.data());
  if (!with_values.empty() && values.normalised_entropy() > kHugeEntropy) {
    return absl::StrCat("large values that come with the ids of ", NamesOf(with_values),
                        ": rows are multiplied by these values; scale the values in the data");
  }
  if (calibration_is_off || values.normalised_entropy() > kMostEntropy) {
    return "the learning rates are too high, or the model was trained for too many epochs";
  }
  return "its labels mean the opposite of the labels of the training data";
}

}  // namespace

std::vector<std::string> DoubtfulMetrics(const JobConfig& job, absl::string_view pass,
                                         const MetricValues& values,
                                         absl::optional<double> train_label_rate) {
  std::vector<std::string> lines;
  const auto judge = [&](absl::string_view task, const MetricValues& of_task,
                         absl::optional<double> train_rate) {
    if (!of_task.has_positives() || of_task.positives() < kLeastSamplesOfAClass ||
        of_task.samples() - of_task.positives() < kLeastSamplesOfAClass) {
      return;
    }
    const std::vector<std::string> doubts = WhatIsDoubtful(of_task);
    if (doubts.empty()) return;
    const bool calibration_is_off =
        of_task.has_calibration() &&
        (of_task.calibration() < kLeastCalibration || of_task.calibration() > kMostCalibration);
    lines.push_back(absl::StrCat(pass, task.empty() ? "" : absl::StrCat(", task '", task, "'"),
                                 ": ", absl::StrJoin(doubts, "; "), ". Likely: ",
                                 LikelyCause(job, of_task, calibration_is_off, train_rate)));
  };
  if (values.tasks().empty()) {
    judge("", values, train_label_rate);
    return lines;
  }
  // The label rate is that of the judged task. This task's values occur twice in `values`: in the
  // list of tasks, and outside of it.
  const std::string judged = job.evaluation().task();
  for (int t = 0; t < values.tasks_size(); ++t) {
    const TaskMetricValues& task = values.tasks(t);
    const bool is_judged = judged.empty() ? t == 0 : task.name() == judged;
    judge(task.name(), task.values(), is_judged ? train_label_rate : absl::nullopt);
  }
  return lines;
}

}  // namespace satrap
