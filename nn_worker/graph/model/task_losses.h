// The losses of a network's tasks (ModelConfig.tasks): the memory for their arguments, and each
// loss's operation. A model without tasks has one loss, BCE of ModelConfig.output.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_TASK_LOSSES_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_TASK_LOSSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/graph/model/pass_key.h"
#include "nn_worker/graph/model/sample_pairs.h"
#include "proto/model.pb.h"

namespace satrap {

// One task with what the network needs to know about it.
struct TaskOutput {
  std::string output;  // the layer
  TaskConfig::Loss loss = TaskConfig::BCE;
  float weight = 1;
  bool remove_hits = false;  // of a candidate loss
};
std::vector<TaskOutput> TaskOutputsOf(const ModelConfig& model);

struct LossSums {
  double loss = 0;    // sum over tasks of task weight * sum of sample weight * loss
  double weight = 0;  // sum of the weights of the samples that at least one task counts
};

class TaskLosses {
 public:
  // Allocates for parts of up to `max_samples` and `max_candidates`. RESOURCE_EXHAUSTED.
  static absl::StatusOr<TaskLosses> Create(std::vector<TaskOutput> tasks, int64_t max_samples,
                                           int64_t max_candidates, Backend* backend);

  const std::vector<TaskOutput>& tasks() const { return tasks_; }

  // Copies everything that the next Compute needs except the network's outputs. `targets` has an
  // element for each task; all have `samples` samples and the same weights.
  void Set(absl::Span<const LossTargets> targets, int64_t samples);
  // Enqueues the loss of each task, and its gradient with respect to the task's output. `control`
  // is the control of the step, which holds the gradient scale. outputs[t] and gradients[t] are
  // (samples, outputs of task t). REQUIRES: Set was called with as many samples
  void Compute(Tensor control, absl::Span<const Tensor> outputs,
               absl::Span<const Tensor> gradients);
  // Appends values to `key`. If the values are equal after two calls of Set, Compute enqueues the
  // same operations after both, on the same tensors.
  void AppendShape(PassKey* key) const;

  // The sums of the last Set and Compute. Waits for the backend.
  LossSums Read();

 private:
  struct Memory {
    Tensor labels, weights, mask;  // (max_samples, 1)
    Tensor pairs;                  // U32 (max_samples, 2): BPR
    Tensor sums;                   // F64 (1, 2)
    // For candidate losses: the item of each column, (1, columns), and of each sample,
    // (max_samples, 1).
    Tensor items, positives;  // U32
    Tensor log_q, positive_log_q;
  };

  // Views of Memory: the tensors that one task's operation reads. A tensor that the operation does
  // not read is empty.
  struct Given {
    Tensor labels, weights, mask, pairs;
    Tensor items, positives, log_q, positive_log_q;
  };

  TaskLosses(std::vector<TaskOutput> tasks, Backend* backend)
      : tasks_(std::move(tasks)), backend_(backend), given_(tasks_.size()) {}
  Given SetTask(const TaskOutput& task, const LossTargets& targets, int64_t samples,
                const Memory& memory);
  void SetPairs(const TaskOutput& task, const LossTargets& targets, const Memory& memory,
                Given* given);
  void SetCandidates(const TaskOutput& task, const CandidateTargets& targets, int64_t samples,
                     const Memory& memory, Given* given);
  static absl::Status AllocateCandidates(int64_t columns, int64_t max_samples, Backend* backend,
                                         Memory* memory);
  void ComputeCandidates(Tensor control, const TaskOutput& task, const Given& given, Tensor sums,
                         Tensor output, Tensor gradient);
  Tensor CopyWeights(const TaskOutput& task, absl::Span<const float> weights, int64_t samples,
                     Tensor to);

  std::vector<TaskOutput> tasks_;
  Backend* backend_;
  std::vector<Memory> memory_;  // by task
  std::vector<Given> given_;    // by task, of the last Set
  double weight_ = 0;           // LossSums.weight, unless the only task's operation computes it
  std::vector<float> scaled_;
  std::vector<uint32_t> items_;  // of the columns
  std::vector<float> log_q_;
  SamplePairs pairs_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_TASK_LOSSES_H_
