#include "nn_worker/trainer/task_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/status_macros.h"

namespace satrap {
namespace {

double PredictionOf(TaskConfig::Loss loss, absl::Span<const float> outputs) {
  for (const float output : outputs) {
    if (std::isnan(output)) return std::numeric_limits<double>::quiet_NaN();
  }
  switch (loss) {
    case TaskConfig::BCE:
      return 1 / (1 + std::exp(-static_cast<double>(outputs[0])));
    case TaskConfig::MSE:
    case TaskConfig::BPR:
    case TaskConfig::SAMPLED_SOFTMAX:
    case TaskConfig::NCE:
    case TaskConfig::IN_BATCH_SOFTMAX:
      return outputs[0];
    case TaskConfig::SOFTMAX_CROSS_ENTROPY:
      return static_cast<double>(std::max_element(outputs.begin(), outputs.end()) -
                                 outputs.begin());
  }
  return 0;
}

}  // namespace

TaskScores::TaskScores(const PartLayout& layout) : layout_(layout), outputs_(layout.tasks.size()) {
  for (const ModelTask& task : layout.tasks) metrics_.emplace_back(task.loss, layout.groups);
}

void TaskScores::Add(size_t task, std::vector<float> outputs, const LossTargets& targets) {
  samples_ = targets.labels.size();
  ScoredSamples scored;
  scored.scores = outputs;
  if (samples_ > 0) scored.outputs = outputs.size() / samples_;
  scored.labels = targets.labels;
  scored.weights = targets.weights;
  scored.mask = targets.mask;
  scored.groups = targets.groups;
  metrics_[task].Add(scored);
  outputs_[task] = std::move(outputs);
}

std::vector<double> TaskScores::Predictions() const {
  const size_t tasks = layout_.tasks.size();
  std::vector<double> predictions(samples_ * tasks);
  for (size_t t = 0; t < tasks; ++t) {
    const size_t width = samples_ == 0 ? 0 : outputs_[t].size() / samples_;
    for (size_t i = 0; i < samples_; ++i) {
      predictions[i * tasks + t] = PredictionOf(
          layout_.tasks[t].loss, absl::MakeSpan(outputs_[t]).subspan(i * width, width));
    }
  }
  return predictions;
}

absl::StatusOr<MetricValues> TaskScores::Merge(Collective* collective) {
  std::vector<MetricValues> of_tasks;
  for (TaskMetrics& metrics : metrics_) {
    ASSIGN_OR_RETURN(MetricValues values, metrics.Merge(collective));
    of_tasks.push_back(std::move(values));
  }
  MetricValues merged = of_tasks[layout_.main_task];
  if (layout_.tasks[0].name.empty()) return merged;
  for (size_t t = 0; t < of_tasks.size(); ++t) {
    TaskMetricValues* const task = merged.add_tasks();
    task->set_name(layout_.tasks[t].name);
    *task->mutable_values() = std::move(of_tasks[t]);
  }
  return merged;
}

}  // namespace satrap
