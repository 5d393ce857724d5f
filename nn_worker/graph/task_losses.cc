#include "nn_worker/graph/task_losses.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

// The weight of the samples that any task counts. All tasks have the same weights.
double CountedWeight(absl::Span<const LossTargets> targets) {
  double sum = 0;
  for (size_t i = 0; i < targets[0].labels.size(); ++i) {
    const bool counts = std::any_of(
        targets.begin(), targets.end(),
        [i](const LossTargets& of_task) { return of_task.mask.empty() || of_task.mask[i] != 0; });
    if (counts) sum += targets[0].weights.empty() ? 1.0 : targets[0].weights[i];
  }
  return sum;
}

// The operation's own sum of weights is that of the samples: they are neither scaled nor paired.
bool SumsSampleWeights(const std::vector<TaskOutput>& tasks) {
  return tasks.size() == 1 && tasks[0].weight == 1 && tasks[0].loss != TaskConfig::BPR;
}

}  // namespace

std::vector<TaskOutput> TaskOutputsOf(const ModelConfig& model) {
  if (model.tasks().empty()) return {{model.output(), TaskConfig::BCE, 1}};
  std::vector<TaskOutput> outputs;
  for (const TaskConfig& task : model.tasks()) {
    outputs.push_back({task.output().empty() ? model.output() : task.output(), task.loss(),
                       static_cast<float>(task.weight())});
  }
  return outputs;
}

absl::StatusOr<TaskLosses> TaskLosses::Create(std::vector<TaskOutput> tasks, int64_t max_samples,
                                              Backend* backend) {
  TaskLosses losses(std::move(tasks), backend);
  for (const TaskOutput& task : losses.tasks_) {
    Memory memory;
    for (Tensor* column : {&memory.labels, &memory.weights, &memory.mask}) {
      ASSIGN_OR_RETURN(*column, AllocateTensor(backend, DType::kF32, max_samples, 1));
    }
    if (task.loss == TaskConfig::BPR) {
      ASSIGN_OR_RETURN(memory.pairs, AllocateTensor(backend, DType::kU32, max_samples, 2));
    }
    ASSIGN_OR_RETURN(memory.sums, AllocateTensor(backend, DType::kF64, 1, 2));
    losses.memory_.push_back(memory);
  }
  return losses;
}

// Empty if all are 1.
Tensor TaskLosses::CopyWeights(const TaskOutput& task, absl::Span<const float> weights,
                               int64_t samples, Tensor to) {
  if (task.weight == 1) {
    if (weights.empty()) return Tensor();
    CopyIn(backend_, weights, to.FirstRows(samples));
    return to.FirstRows(samples);
  }
  scaled_.assign(samples, task.weight);
  for (size_t i = 0; i < weights.size(); ++i) scaled_[i] *= weights[i];
  CopyIn(backend_, scaled_, to.FirstRows(samples));
  return to.FirstRows(samples);
}

void TaskLosses::ComputePairs(Tensor control, const TaskOutput& task, const LossTargets& targets,
                              const Memory& memory, Tensor output, Tensor gradient) {
  MakePairs(targets, &pairs_);
  const auto count = static_cast<int64_t>(pairs_.weights.size());
  for (float& weight : pairs_.weights) weight *= task.weight;
  CopyIn(backend_, pairs_.samples, memory.pairs.FirstRows(count));
  CopyIn(backend_, pairs_.weights, memory.weights.FirstRows(count));
  backend_->PairwiseLogistic(control, output, memory.pairs.FirstRows(count),
                             memory.weights.FirstRows(count), gradient, memory.sums);
}

void TaskLosses::Compute(Tensor control, absl::Span<const LossTargets> targets,
                         absl::Span<const Tensor> outputs, absl::Span<const Tensor> gradients) {
  CHECK(targets.size() == tasks_.size()) << targets.size();
  if (!SumsSampleWeights(tasks_)) weight_ = CountedWeight(targets);
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const TaskOutput& task = tasks_[t];
    const Memory& memory = memory_[t];
    const int64_t samples = outputs[t].rows;
    CHECK(static_cast<int64_t>(targets[t].labels.size()) == samples) << targets[t].labels.size();
    if (task.loss == TaskConfig::BPR) {
      ComputePairs(control, task, targets[t], memory, outputs[t], gradients[t]);
      continue;
    }
    const Tensor labels = memory.labels.FirstRows(samples);
    CopyIn(backend_, targets[t].labels, labels);
    const Tensor weights = CopyWeights(task, targets[t].weights, samples, memory.weights);
    Tensor mask;
    if (!targets[t].mask.empty()) {
      mask = memory.mask.FirstRows(samples);
      CopyIn(backend_, targets[t].mask, mask);
    }
    switch (task.loss) {
      case TaskConfig::BCE:
        backend_->BceWithLogits(control, outputs[t], labels, weights, mask, gradients[t],
                                memory.sums);
        break;
      case TaskConfig::MSE:
        backend_->SquaredError(control, outputs[t], labels, weights, mask, gradients[t],
                               memory.sums);
        break;
      case TaskConfig::SOFTMAX_CROSS_ENTROPY:
        backend_->SoftmaxCrossEntropy(control, outputs[t], labels, weights, mask, gradients[t],
                                      memory.sums);
        break;
      case TaskConfig::BPR:
        break;
    }
  }
}

LossSums TaskLosses::Read() {
  LossSums sums;
  for (const Memory& memory : memory_) {
    const std::vector<double> of_task = ReadDoubles(backend_, memory.sums);
    sums.loss += of_task[0];
    sums.weight = SumsSampleWeights(tasks_) ? of_task[1] : weight_;
  }
  return sums;
}

}  // namespace satrap
