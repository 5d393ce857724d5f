// What an evaluation pass makes of the outputs of all tasks: metrics, and predictions of the part
// that was added last.
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

  // Adds what the network gave for a task and a part, [samples, outputs].
  void Add(size_t task, std::vector<float> outputs, const LossTargets& targets);

  // The scores of the last part, [samples, tasks]: with BCE the probability, with MSE and BPR the
  // output as it is, with a candidate loss the score of the sample's own item, with
  // SOFTMAX_CROSS_ENTROPY the most probable class, the first of several. NaN if an output of the
  // task is. REQUIRES: all tasks were added
  std::vector<double> Predictions() const;

  // Returns the metrics of all ranks' samples since the last Merge: those of the task that is
  // judged, and in `tasks` those of each if the job names its tasks. Collective; errors are the
  // metrics'.
  absl::StatusOr<MetricValues> Merge(Collective* collective);

 private:
  const PartLayout& layout_;
  std::vector<TaskMetrics> metrics_;         // by task
  std::vector<std::vector<float>> outputs_;  // by task, of the last part
  size_t samples_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_TASK_SCORES_H_
