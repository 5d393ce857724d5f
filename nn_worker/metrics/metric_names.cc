#include "nn_worker/metrics/metric_names.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/count_text.h"

namespace satrap {

void VisitMetrics(const MetricValues& values,
                  absl::FunctionRef<void(const char* name, double value)> number,
                  absl::FunctionRef<void(const char* name, uint64_t value)> count) {
  if (values.has_auc()) number("auc", values.auc());
  if (values.has_logloss()) number("logloss", values.logloss());
  if (values.has_normalised_entropy()) number("normalised_entropy", values.normalised_entropy());
  if (values.has_calibration()) number("calibration", values.calibration());
  if (values.has_mae()) number("mae", values.mae());
  if (values.has_mse()) number("mse", values.mse());
  if (values.has_rmse()) number("rmse", values.rmse());
  if (values.has_gauc_by_samples()) number("gauc_by_samples", values.gauc_by_samples());
  if (values.has_gauc_groups()) count("gauc_groups", values.gauc_groups());
  if (values.has_gauc_groups_left_out()) {
    count("gauc_groups_left_out", values.gauc_groups_left_out());
  }
}

std::string MetricsText(const MetricValues& values) {
  std::vector<std::string> parts;
  if (values.has_auc()) parts.push_back(absl::StrFormat("AUC %.5f", values.auc()));
  if (values.has_logloss()) parts.push_back(absl::StrFormat("logloss %.5f", values.logloss()));
  if (values.has_normalised_entropy()) {
    parts.push_back(absl::StrFormat("NE %.4f", values.normalised_entropy()));
  }
  if (values.has_rmse()) parts.push_back(absl::StrFormat("RMSE %.5f", values.rmse()));
  if (values.has_mae()) parts.push_back(absl::StrFormat("MAE %.5f", values.mae()));
  if (values.has_gauc_by_samples()) {
    parts.push_back(absl::StrFormat("GAUC by samples %.5f (%s)", values.gauc_by_samples(),
                                    Counted(values.gauc_groups(), "group")));
  }
  if (parts.empty()) return "no metric of its loss; `satrap retrieve` judges what it retrieves";
  return absl::StrJoin(parts, ", ");
}

}  // namespace satrap
