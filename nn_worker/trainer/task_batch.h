// What the tasks of a job need from one part: the labels of each task, and which samples count for
// it.
//
// A sample counts for a task if its label is known and, where the task has a mask, that column is
// known and not 0. With one label and no mask nothing is copied but the mask.
//
// Not thread-safe. Refers to the part that it was made from, and to its own memory, until the next
// Set.

#ifndef SATRAP_NN_WORKER_TRAINER_TASK_BATCH_H_
#define SATRAP_NN_WORKER_TRAINER_TASK_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/config/tasks.h"
#include "nn_worker/graph/model/sample_pairs.h"
#include "nn_worker/trainer/part_view.h"

namespace satrap {

class TaskBatch {
 public:
  // `tasks` outlives this object. `num_outputs`: by task, the number of values per sample of the
  // task's output. `labels`: the number of LABEL columns of the data.
  TaskBatch(absl::Span<const ModelTask> tasks, std::vector<int64_t> num_outputs, size_t labels);

  // INVALID_ARGUMENT, naming the task, if a label is not a class that its output has. A view of
  // zero samples is legal.
  absl::Status Set(const PartView& view);

  // By task.
  absl::Span<const LossTargets> targets() const { return targets_; }

 private:
  absl::Status CheckClasses(size_t task) const;

  const absl::Span<const ModelTask> tasks_;
  const std::vector<int64_t> num_outputs_;
  const size_t labels_;
  std::vector<std::vector<float>> columns_, masks_;  // by task; unused if the part's own serve
  std::vector<LossTargets> targets_;
};

// Samples that count for a task and have a weight, and the sum of their labels.
struct LabelCount {
  uint64_t samples = 0;
  double positives = 0;
};
LabelCount CountLabels(const LossTargets& targets);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_TASK_BATCH_H_
