#include "nn_worker/trainer/task_batch.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {

TaskBatch::TaskBatch(absl::Span<const ModelTask> tasks, std::vector<int64_t> num_outputs,
                     size_t labels)
    : tasks_(tasks),
      num_outputs_(std::move(num_outputs)),
      labels_(labels),
      columns_(tasks.size()),
      masks_(tasks.size()),
      targets_(tasks.size()) {
  CHECK(num_outputs_.size() == tasks.size());
}

absl::Status TaskBatch::Set(const PartView& view) {
  const auto known = [&](size_t i, size_t label) {
    return view.mask.empty() || view.mask[i * labels_ + label] != 0;
  };
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const ModelTask& task = tasks_[t];
    LossTargets& targets = targets_[t];
    targets = LossTargets();
    targets.labels = view.labels;
    if (labels_ > 1) {
      columns_[t].resize(view.samples);
      for (size_t i = 0; i < view.samples; ++i) {
        columns_[t][i] = view.labels[i * labels_ + task.label];
      }
      targets.labels = columns_[t];
    }
    if (!view.mask.empty() || task.mask >= 0) {
      masks_[t].resize(view.samples);
      for (size_t i = 0; i < view.samples; ++i) {
        const size_t mask = static_cast<size_t>(task.mask);
        const bool counts =
            known(i, task.label) &&
            (task.mask < 0 || (known(i, mask) && view.labels[i * labels_ + mask] != 0));
        masks_[t][i] = counts ? 1.0f : 0.0f;
      }
      targets.mask = masks_[t];
    }
    targets.weights = view.weights;
    targets.groups = view.groups;
    targets.candidates = {view.candidates.indices.rows, view.candidates.positives,
                          view.candidates.log_q, view.candidates.positive_log_q};
    if (task.loss == TaskConfig::SOFTMAX_CROSS_ENTROPY) RETURN_IF_ERROR(CheckClasses(t));
  }
  return absl::OkStatus();
}

absl::Status TaskBatch::CheckClasses(size_t task) const {
  const LossTargets& targets = targets_[task];
  for (size_t i = 0; i < targets.labels.size(); ++i) {
    if (!targets.mask.empty() && targets.mask[i] == 0) continue;
    const float label = targets.labels[i];
    if (label >= 0 && label < static_cast<float>(num_outputs_[task]) &&
        label == std::floor(label)) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("task '", tasks_[task].name, "': the label ", label, " is none of the ",
                     num_outputs_[task], " classes of its output, which are numbered from 0"));
  }
  return absl::OkStatus();
}

LabelCount CountLabels(const LossTargets& targets) {
  LabelCount count;
  for (size_t i = 0; i < targets.labels.size(); ++i) {
    if (!targets.mask.empty() && targets.mask[i] == 0) continue;
    if (!targets.weights.empty() && targets.weights[i] == 0) continue;
    ++count.samples;
    count.positives += targets.labels[i];
  }
  return count;
}

}  // namespace satrap
