// Turns the outputs of all tasks in an evaluation pass into metrics, and into predictions for the
// part that was added last.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_TRAINER_TASK_SCORES_H_
#define SATRAP_NN_WORKER_TRAINER_TASK_SCORES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/graph/model/sample_pairs.h"
#include "nn_worker/metrics/task_metrics.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"

namespace satrap {

class TaskScores {
 public:
  // `layout` outlives this object.
  explicit TaskScores(const PartLayout& layout);

  // Adds the network's outputs for a task and a part, [samples, outputs].
  void Add(size_t task, std::vector<float> outputs, const LossTargets& targets);

  // The scores of the last part, [samples, tasks]: with BCE the probability; with MSE and BPR the
  // output as it is; with a candidate loss the score of the sample's own item; with
  // SOFTMAX_CROSS_ENTROPY the most probable class, and the first of these if several are equally
  // probable. NaN if an output of the task is NaN. REQUIRES: all tasks were added
  std::vector<double> Predictions() const;

  // Returns the metrics of all ranks' samples since the last Merge: the metrics of the judged task
  // and, if the job names its tasks, those of each task in `tasks`. Collective. Errors are those of
  // TaskMetrics::Merge.
  absl::StatusOr<MetricValues> Merge(Collective* collective);

 private:
  const PartLayout& layout_;
  std::vector<TaskMetrics> metrics_;         // by task
  std::vector<std::vector<float>> outputs_;  // by task, of the last part
  size_t samples_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_TASK_SCORES_H_
