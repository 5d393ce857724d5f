#include "nn_worker/graph/task_losses.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/candidates.h"
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
  if (model.tasks().empty()) return {{model.output(), TaskConfig::BCE, 1, false}};
  std::vector<TaskOutput> outputs;
  for (const TaskConfig& task : model.tasks()) {
    outputs.push_back({task.output().empty() ? model.output() : task.output(), task.loss(),
                       static_cast<float>(task.weight()),
                       RemovesHits(model.candidates(), task.loss())});
  }
  return outputs;
}

absl::Status TaskLosses::AllocateCandidates(int64_t columns, int64_t max_samples, Backend* backend,
                                            Memory* memory) {
  ASSIGN_OR_RETURN(memory->items, AllocateTensor(backend, DType::kU32, 1, columns));
  ASSIGN_OR_RETURN(memory->positives, AllocateTensor(backend, DType::kU32, max_samples, 1));
  ASSIGN_OR_RETURN(memory->log_q, AllocateTensor(backend, DType::kF32, 1, columns));
  ASSIGN_OR_RETURN(memory->positive_log_q, AllocateTensor(backend, DType::kF32, max_samples, 1));
  return absl::OkStatus();
}

absl::StatusOr<TaskLosses> TaskLosses::Create(std::vector<TaskOutput> tasks, int64_t max_samples,
                                              int64_t max_candidates, Backend* backend) {
  TaskLosses losses(std::move(tasks), backend);
  for (const TaskOutput& task : losses.tasks_) {
    Memory memory;
    for (Tensor* column : {&memory.labels, &memory.weights, &memory.mask}) {
      ASSIGN_OR_RETURN(*column, AllocateTensor(backend, DType::kF32, max_samples, 1));
    }
    if (task.loss == TaskConfig::BPR) {
      ASSIGN_OR_RETURN(memory.pairs, AllocateTensor(backend, DType::kU32, max_samples, 2));
    }
    if (IsCandidateLoss(task.loss)) {
      const bool in_batch = task.loss == TaskConfig::IN_BATCH_SOFTMAX;
      RETURN_IF_ERROR(AllocateCandidates(in_batch ? max_samples : 1 + max_candidates, max_samples,
                                         backend, &memory));
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

// Column 0 is the positive's, and stands for no item; in a batch column j is the item of sample j.
void TaskLosses::ComputeCandidates(Tensor control, const TaskOutput& task,
                                   const LossTargets& targets, const Memory& memory, Tensor weights,
                                   Tensor mask, Tensor output, Tensor gradient) {
  const CandidateTargets& of = targets.candidates;
  const bool in_batch = task.loss == TaskConfig::IN_BATCH_SOFTMAX;
  const int64_t samples = output.rows;
  const int64_t columns = in_batch ? samples : 1 + static_cast<int64_t>(of.items.size());
  CHECK(static_cast<int64_t>(of.positives.size()) == samples) << of.positives.size();
  CandidateLossArgs args;
  args.kind =
      task.loss == TaskConfig::NCE ? CandidateLossKind::kLogistic : CandidateLossKind::kSoftmax;
  args.positives_on_diagonal = in_batch;
  args.remove_hits = task.remove_hits;
  args.scores = output.Columns(0, columns);
  args.dscores = gradient.Columns(0, columns);
  args.weights = weights;
  args.mask = mask;
  args.sums = memory.sums;
  args.items = memory.items.Columns(0, columns);
  args.positives = memory.positives.FirstRows(samples);
  if (in_batch) {
    CopyIn(backend_, of.positives, args.items);
  } else {
    items_.assign(1, 0);
    items_.insert(items_.end(), of.items.begin(), of.items.end());
    CopyIn(backend_, items_, args.items);
  }
  CopyIn(backend_, of.positives, args.positives);
  if (!of.positive_log_q.empty()) {
    args.log_q = memory.log_q.Columns(0, columns);
    args.positive_log_q = memory.positive_log_q.FirstRows(samples);
    if (in_batch) {
      CopyIn(backend_, of.positive_log_q, args.log_q);
    } else {
      log_q_.assign(1, 0);
      log_q_.insert(log_q_.end(), of.log_q.begin(), of.log_q.end());
      CopyIn(backend_, log_q_, args.log_q);
    }
    CopyIn(backend_, of.positive_log_q, args.positive_log_q);
  }
  backend_->CandidateLoss(control, args);
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
      case TaskConfig::SAMPLED_SOFTMAX:
      case TaskConfig::NCE:
      case TaskConfig::IN_BATCH_SOFTMAX:
        ComputeCandidates(control, task, targets[t], memory, weights, mask, outputs[t],
                          gradients[t]);
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
