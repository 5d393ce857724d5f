#include "nn_worker/metrics/metric_names.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/count_text.h"
#include "common/json/json.h"

namespace satrap {

void CopyMetrics(const MetricValues& values, google::protobuf::Message* to) {
  const auto with_samples = [](MetricValues all) {
    all.set_samples(all.samples());
    return all;
  };
  MetricValues all = with_samples(values);
  for (TaskMetricValues& task : *all.mutable_tasks()) {
    *task.mutable_values() = with_samples(task.values());
  }
  CHECK_OK(ParseJson(JsonOf(all), to));
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
  if (parts.empty())
    return "its loss has no metric here; judge the retrieved items with `satrap retrieve`";
  return absl::StrJoin(parts, ", ");
}

}  // namespace satrap
