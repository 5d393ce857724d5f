#include "nn_worker/graph/model/task_losses.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/candidates.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

// The total weight of the samples that at least one task counts. A sample has the same weight in
// all tasks.
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

// Whether the sum of weights that the loss operation writes equals the sum of the samples' own
// weights. This is so if there is only one task, and the task neither scales weights nor pairs
// samples.
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
      // Within a batch the candidates are the items of its samples.
      const bool in_batch = task.loss == TaskConfig::IN_BATCH_SOFTMAX;
      RETURN_IF_ERROR(AllocateCandidates(in_batch ? max_samples : 1 + max_candidates, max_samples,
                                         backend, &memory));
    }
    ASSIGN_OR_RETURN(memory.sums, AllocateTensor(backend, DType::kF64, 1, 2));
    losses.memory_.push_back(memory);
  }
  return losses;
}

// The result is empty if all weights are 1.
Tensor TaskLosses::CopyWeights(const TaskOutput& task, absl::Span<const float> weights,
                               int64_t samples, Tensor to) {
  if (task.weight == 1) {
    if (weights.empty()) return Tensor();
    CopyIn(backend_, weights, to.FirstRows(samples));
    return to.FirstRows(samples);
  }
  // Operations take only the weights of samples, so these are multiplied by the task's weight.
  scaled_.assign(samples, task.weight);
  for (size_t i = 0; i < weights.size(); ++i) scaled_[i] *= weights[i];
  CopyIn(backend_, scaled_, to.FirstRows(samples));
  return to.FirstRows(samples);
}

void TaskLosses::SetPairs(const TaskOutput& task, const LossTargets& targets, const Memory& memory,
                          Given* given) {
  // The operation reads pairs and their weights, and no labels: a pair says which of its two
  // samples is better.
  MakePairs(targets, &pairs_);
  const auto count = static_cast<int64_t>(pairs_.weights.size());
  for (float& weight : pairs_.weights) weight *= task.weight;
  given->pairs = memory.pairs.FirstRows(count);
  given->weights = memory.weights.FirstRows(count);
  CopyIn(backend_, pairs_.samples, given->pairs);
  CopyIn(backend_, pairs_.weights, given->weights);
}

// Column 0 belongs to the positive and has no item. For a loss within the batch, however, column j
// belongs to the item of sample j.
void TaskLosses::SetCandidates(const TaskOutput& task, const CandidateTargets& of, int64_t samples,
                               const Memory& memory, Given* given) {
  const bool in_batch = task.loss == TaskConfig::IN_BATCH_SOFTMAX;
  const int64_t columns = in_batch ? samples : 1 + static_cast<int64_t>(of.items.size());
  CHECK(static_cast<int64_t>(of.positives.size()) == samples) << of.positives.size();
  given->items = memory.items.Columns(0, columns);
  given->positives = memory.positives.FirstRows(samples);
  if (in_batch) {
    CopyIn(backend_, of.positives, given->items);
  } else {
    items_.assign(1, 0);
    items_.insert(items_.end(), of.items.begin(), of.items.end());
    CopyIn(backend_, items_, given->items);
  }
  CopyIn(backend_, of.positives, given->positives);
  if (of.positive_log_q.empty()) return;
  given->log_q = memory.log_q.Columns(0, columns);
  given->positive_log_q = memory.positive_log_q.FirstRows(samples);
  if (in_batch) {
    CopyIn(backend_, of.positive_log_q, given->log_q);
  } else {
    log_q_.assign(1, 0);
    log_q_.insert(log_q_.end(), of.log_q.begin(), of.log_q.end());
    CopyIn(backend_, log_q_, given->log_q);
  }
  CopyIn(backend_, of.positive_log_q, given->positive_log_q);
}

TaskLosses::Given TaskLosses::SetTask(const TaskOutput& task, const LossTargets& targets,
                                      int64_t samples, const Memory& memory) {
  CHECK(static_cast<int64_t>(targets.labels.size()) == samples) << targets.labels.size();
  Given given;
  if (task.loss == TaskConfig::BPR) {
    SetPairs(task, targets, memory, &given);
    return given;
  }
  given.labels = memory.labels.FirstRows(samples);
  CopyIn(backend_, targets.labels, given.labels);
  given.weights = CopyWeights(task, targets.weights, samples, memory.weights);
  if (!targets.mask.empty()) {
    given.mask = memory.mask.FirstRows(samples);
    CopyIn(backend_, targets.mask, given.mask);
  }
  if (IsCandidateLoss(task.loss)) SetCandidates(task, targets.candidates, samples, memory, &given);
  return given;
}

void TaskLosses::Set(absl::Span<const LossTargets> targets, int64_t samples) {
  CHECK(targets.size() == tasks_.size()) << targets.size();
  // A sample counts once, however many tasks count it, so no single operation writes the correct
  // sum.
  if (!SumsSampleWeights(tasks_)) weight_ = CountedWeight(targets);
  for (size_t t = 0; t < tasks_.size(); ++t) {
    given_[t] = SetTask(tasks_[t], targets[t], samples, memory_[t]);
  }
}

// Appending sizes is enough, because each of these tensors has a fixed number of rows or columns.
void TaskLosses::AppendShape(PassKey* key) const {
  for (const Given& given : given_) {
    for (const Tensor* tensor : {&given.labels, &given.weights, &given.mask, &given.pairs,
                                 &given.items, &given.positives, &given.log_q}) {
      key->push_back(tensor->size());
    }
  }
}

void TaskLosses::ComputeCandidates(Tensor control, const TaskOutput& task, const Given& given,
                                   Tensor sums, Tensor output, Tensor gradient) {
  const int64_t columns = given.items.cols;
  CandidateLossArgs args;
  args.kind =
      task.loss == TaskConfig::NCE ? CandidateLossKind::kLogistic : CandidateLossKind::kSoftmax;
  args.positives_on_diagonal = task.loss == TaskConfig::IN_BATCH_SOFTMAX;
  args.remove_hits = task.remove_hits;
  args.scores = output.Columns(0, columns);
  args.dscores = gradient.Columns(0, columns);
  args.weights = given.weights;
  args.mask = given.mask;
  args.sums = sums;
  args.items = given.items;
  args.positives = given.positives;
  args.log_q = given.log_q;
  args.positive_log_q = given.positive_log_q;
  backend_->CandidateLoss(control, args);
}

void TaskLosses::Compute(Tensor control, absl::Span<const Tensor> outputs,
                         absl::Span<const Tensor> gradients) {
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const Given& given = given_[t];
    const Tensor &output = outputs[t], &gradient = gradients[t], &sums = memory_[t].sums;
    switch (tasks_[t].loss) {
      case TaskConfig::BCE:
        backend_->BceWithLogits(control, output, given.labels, given.weights, given.mask, gradient,
                                sums);
        break;
      case TaskConfig::MSE:
        backend_->SquaredError(control, output, given.labels, given.weights, given.mask, gradient,
                               sums);
        break;
      case TaskConfig::SOFTMAX_CROSS_ENTROPY:
        backend_->SoftmaxCrossEntropy(control, output, given.labels, given.weights, given.mask,
                                      gradient, sums);
        break;
      case TaskConfig::SAMPLED_SOFTMAX:
      case TaskConfig::NCE:
      case TaskConfig::IN_BATCH_SOFTMAX:
        ComputeCandidates(control, tasks_[t], given, sums, output, gradient);
        break;
      case TaskConfig::BPR:
        backend_->PairwiseLogistic(control, output, given.pairs, given.weights, gradient, sums);
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
