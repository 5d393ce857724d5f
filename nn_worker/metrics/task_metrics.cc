#include "nn_worker/metrics/task_metrics.h"

#include <string>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/metrics/auc.h"
#include "nn_worker/metrics/class_log_loss.h"
#include "nn_worker/metrics/group_auc.h"
#include "nn_worker/metrics/log_loss.h"
#include "nn_worker/metrics/regression_errors.h"

namespace satrap {
namespace {

class AucMetric final : public PassMetric {
 public:
  void Add(const ScoredSamples& samples) override {
    for (size_t i = 0; i < samples.labels.size(); ++i) {
      if (!samples.counts(i)) continue;
      auc_.Add(samples.scores[i], samples.labels[i], static_cast<float>(samples.weight(i)));
    }
  }
  absl::Status Merge(Collective* collective) override { return auc_.Merge(collective); }
  void Finish(MetricValues* values) override { values->set_auc(auc_.Compute().value); }

 private:
  Auc auc_;
};

class LogLossMetric final : public PassMetric {
 public:
  void Add(const ScoredSamples& samples) override {
    for (size_t i = 0; i < samples.labels.size(); ++i) {
      if (samples.counts(i)) losses_.Add(samples.scores[i], samples.labels[i], samples.weight(i));
    }
  }
  absl::Status Merge(Collective* collective) override {
    double sums[LogLoss::kSums];
    losses_.Sums(absl::MakeSpan(sums));
    RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(sums)));
    losses_.SetSums(sums);
    return absl::OkStatus();
  }
  void Finish(MetricValues* values) override {
    values->set_logloss(losses_.LogLossValue().value);
    values->set_normalised_entropy(losses_.NormalisedEntropy().value);
    values->set_calibration(losses_.Calibration().value);
  }

 private:
  LogLoss losses_;
};

}  // namespace

bool HasTwoClasses(TaskConfig::Loss loss) {
  return loss == TaskConfig::BCE || loss == TaskConfig::BPR;
}

TaskMetrics::TaskMetrics(TaskConfig::Loss loss, bool groups) : loss_(loss), groups_(groups) {
  Begin();
}

void TaskMetrics::Begin() {
  samples_ = positives_ = 0;
  metrics_.clear();
  switch (loss_) {
    case TaskConfig::BCE:
      metrics_.push_back(std::make_unique<LogLossMetric>());
      metrics_.push_back(std::make_unique<AucMetric>());
      break;
    case TaskConfig::MSE:
      metrics_.push_back(std::make_unique<RegressionErrors>());
      return;
    case TaskConfig::BPR:
      metrics_.push_back(std::make_unique<AucMetric>());
      break;
    case TaskConfig::SOFTMAX_CROSS_ENTROPY:
      metrics_.push_back(std::make_unique<ClassLogLoss>());
      return;
    case TaskConfig::SAMPLED_SOFTMAX:
    case TaskConfig::NCE:
    case TaskConfig::IN_BATCH_SOFTMAX:
      return;
  }
  if (groups_) metrics_.push_back(std::make_unique<GroupAuc>());
}

void TaskMetrics::Add(const ScoredSamples& samples) {
  const size_t count = samples.labels.size();
  CHECK(samples.scores.size() == count * samples.outputs);
  CHECK(samples.weights.empty() || samples.weights.size() == count);
  CHECK(samples.mask.empty() || samples.mask.size() == count);
  for (size_t i = 0; i < count; ++i) {
    if (!samples.counts(i)) continue;
    ++samples_;
    positives_ += samples.labels[i] > 0.5f ? 1 : 0;
  }
  for (const auto& metric : metrics_) metric->Add(samples);
}

absl::StatusOr<MetricValues> TaskMetrics::Merge(Collective* collective) {
  MetricValues values;
  double counts[] = {samples_, positives_};
  RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(counts)));
  values.set_samples(static_cast<uint64_t>(counts[0]));
  if (HasTwoClasses(loss_)) values.set_positives(static_cast<uint64_t>(counts[1]));
  for (const auto& metric : metrics_) {
    RETURN_IF_ERROR(metric->Merge(collective));
    metric->Finish(&values);
  }
  Begin();
  return values;
}

}  // namespace satrap
