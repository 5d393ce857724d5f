#include "nn_worker/metrics/binary_metrics.h"

#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {

void BinaryMetrics::Add(absl::Span<const float> logits, absl::Span<const float> labels,
                        absl::Span<const float> weights, absl::Span<const float> mask) {
  CHECK(labels.size() == logits.size());
  CHECK(weights.empty() || weights.size() == logits.size());
  CHECK(mask.empty() || mask.size() == logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!mask.empty() && mask[i] == 0) continue;
    const double weight = weights.empty() ? 1.0 : weights[i];
    auc_.Add(logits[i], labels[i], weight);
    log_loss_.Add(logits[i], labels[i], weight);
  }
}

absl::StatusOr<MetricValues> BinaryMetrics::Merge(Collective* collective) {
  std::vector<double> sums(LogLoss::kSums);
  log_loss_.Sums(absl::MakeSpan(sums));
  RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(sums)));
  log_loss_.SetSums(sums);
  ASSIGN_OR_RETURN(const std::vector<std::string> states,
                   collective->AllGatherBytes(auc_.Encode()));
  // Every rank merges all states in rank order, its own among them, so all get the same bits.
  auc_ = Auc();
  for (const std::string& state : states) RETURN_IF_ERROR(auc_.MergeEncoded(state));
  const MetricReport report = Report();
  MetricValues values;
  values.set_samples(static_cast<uint64_t>(report.samples));
  values.set_auc(report.auc.value);
  values.set_logloss(report.logloss.value);
  values.set_normalised_entropy(report.normalised_entropy.value);
  values.set_calibration(report.calibration.value);
  return values;
}

MetricReport BinaryMetrics::Report() {
  MetricReport report;
  report.samples = log_loss_.samples();
  report.weight = log_loss_.weight();
  report.auc = auc_.Compute();
  report.logloss = log_loss_.LogLossValue();
  report.normalised_entropy = log_loss_.NormalisedEntropy();
  report.calibration = log_loss_.Calibration();
  report.click_rate = log_loss_.ClickRate();
  return report;
}

}  // namespace satrap
