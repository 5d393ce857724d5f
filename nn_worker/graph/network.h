// A Network is the dense part of a model, ready to train: a graph bound to memory, an optimizer and
// the ranks' collective.
//
// One training step of a rank. `samples` may be 0; every rank makes the same calls:
//
//     write the part's inputs to input_view(i)   this is the memory that the first layer reads
//     Train(samples, pass, targets)              or Forward, Loss, Backward; gradients are sums
//                                                over samples, not means
//     StartReduce()                              begins to sum parameter gradients over all ranks
//     read input_gradient(i)                     during the reduction; scatter them to the rows
//     FinishReduce()                             then the caller sums the totals over all ranks
//     Step(dense_step, totals)                   changes nothing unless it counts and is finite
//
// Precision. With a dtype of 16 bits, values of samples and their gradients have that dtype, and
// products read a copy of the weights that is rounded after each step. Everything else stays F32 or
// F64, and so do saved models.
//
// Memory. There is one flat buffer each for parameters, gradients and optimizer state. Create
// allocates them and all workspace, for `max_samples`. Parameters begin at multiples of a cache
// line; the gaps hold zeros and are never changed. Views stay valid for the life of the network;
// their values change with each pass. An input may lie within the memory of a concatenation, so its
// stride may be wider than its columns.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/graph/model/task_losses.h"
#include "nn_worker/graph/network_options.h"
#include "nn_worker/graph/saved/dense_checkpoint.h"
#include "nn_worker/graph/saved/dense_start.h"
#include "nn_worker/graph/step/loss_scale.h"
#include "nn_worker/layer/layer.h"
#include "nn_worker/optimizer/dense_optimizer.h"

namespace satrap {

class Network {
 public:
  // INVALID_ARGUMENT for a model that does not fit its inputs (graph_builder.h) or an optimizer out
  // of range; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<Network>> Create(const NetworkOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Graph inputs: 0 is "numeric", 1 + i is GraphInputs.segments[i]; then come the lengths of
  // GraphInputs.sequences, and then GraphInputs.candidates.
  int num_inputs() const;
  // The memory of an input, of shape (max_samples, values of one sample), or (max_candidates, dim)
  // for an input of candidates. Empty if no layer reads the input.
  Tensor input_view(int input) const;
  // The gradient of an input, of the same shape, valid after Backward for the rows of the part.
  // Empty for "numeric", for lengths and for inputs that no layer reads.
  Tensor input_gradient(int input) const;
  Backend* backend() const;  // owns the memory of the views

  // Computes the outputs of rows [0, samples) of the inputs, and of rows [0, pass.candidates) of
  // the inputs that belong to the part. An evaluation calls no collective, drops nothing, and uses
  // batch norm's running statistics and, if there are any, averaged weights. The bits of a row's
  // logit then depend on that row alone. Fails only if a collective fails. REQUIRES: samples <=
  // max_samples
  absl::Status Forward(int64_t samples, const PassContext& pass);
  int num_tasks() const;
  // The number of values of a sample in ReadLogits. With a candidate loss it is 1: the score of the
  // sample's own item.
  int64_t num_outputs(int task) const;
  // A copy of the last Forward's output for a task, [samples, num_outputs]. Waits for the backend.
  std::vector<float> ReadLogits(int task = 0);

  // Forward, Loss and Backward. A full part may run from graphs (pass_graphs.h), with the same
  // bits.
  absl::Status Train(int64_t samples, const PassContext& pass,
                     absl::Span<const LossTargets> targets);
  int64_t graph_launches() const;   // so far
  std::string WhyNoGraphs() const;  // empty: full parts run as graphs
  // Enqueues the losses of all tasks and their gradients. REQUIRES: a Forward; targets.size() ==
  // num_tasks(); in each target labels.size() == samples, and every other span has that size or is
  // empty
  void Loss(absl::Span<const LossTargets> targets);
  // As Loss above, for a network with one task.
  void Loss(absl::Span<const float> labels, absl::Span<const float> weights,
            absl::Span<const float> mask);
  // The sums of the last Loss over all tasks and this rank's part. Waits for the backend.
  LossSums ReadLoss();

  // Fails only if a collective fails. REQUIRES: a training Forward and its Loss
  absl::Status Backward();
  // Begins to add up the parameter gradients over all ranks, in place, as GradientSums::Start does.
  // If this succeeds, nothing else may touch gradients() until FinishReduce. The destructor ends
  // the sum.
  absl::Status StartReduce();
  // Waits for the sums. REQUIRES: StartReduce
  absl::Status FinishReduce();
  // These two functions count gradients of parameters (of this rank; after the reduction, the sums
  // over all ranks) and of inputs. The gradients are still multiplied by the gradient scale. Both
  // functions wait for the backend.
  int64_t CountGradientsBeyond(float limit);  // whose magnitude is above it, or that are NaN
  int64_t CountNonFiniteGradients();

  // The sum of the squares of the gradients in the form in which Step(step, totals) uses them:
  // normalised, and with L2 and L1. It covers the parameters that are not frozen. It has the same
  // bits on every rank. Waits for the backend. REQUIRES: FinishReduce; the step counts
  double GradientSquares(const DenseStep& step, const StepTotals& totals);

  // For tests and tools: the whole flat buffers, (1, values), gaps included.
  Tensor gradients() const;
  Tensor parameters() const;
  // Ends the step: if it counts and is finite, makes one optimizer step and updates running
  // statistics. Every rank calls it in every step, with equal arguments. The gradient, with L2 and
  // L1, is multiplied by `clip_factor`. Fails only if a collective fails.
  absl::Status Step(const DenseStep& step, const StepTotals& totals, float clip_factor = 1);
  // The control as the last Step has decided it. Waits for the backend.
  StepControl ReadControl();
  // The factor by which Loss multiplies the gradients, as of the last Step. All gradients of
  // samples and of parameters contain this factor until Step divides by it.
  const GradientScale& gradient_scale() const;

  // The number of values of all parameters, including frozen ones but not gaps. Papers state this
  // number.
  int64_t num_parameters() const;
  // Names such as "deep/linear_0.weight", in the order of parameters().
  std::vector<std::string> parameter_names() const;
  // The values of all parameters in this order, without the gaps and padding of the flat buffer,
  // which differ between backends. Waits for the backend.
  std::vector<float> ParameterValues();
  std::vector<std::string> value_names() const;  // these, then running statistics
  // A copy of the parameter of this name. NOT_FOUND if there is none.
  absl::StatusOr<NamedArray> Parameter(absl::string_view name);

  // Parameters, their averages, optimizer state and running statistics, in the format of
  // dense_checkpoint.h.
  std::string Save();
  using LoadScope = satrap::LoadScope;
  // Changes nothing unless it succeeds. DATA_LOSS if `bytes` is damaged; FAILED_PRECONDITION,
  // naming an array, if names or shapes are not those of this network.
  absl::Status Load(absl::string_view bytes, LoadScope scope);
  // Takes over the values that `config` selects from a model that was saved after `model_step`
  // steps. Errors are those of Load and PlanDenseTake.
  using Taken = TakenOfModel;
  absl::StatusOr<Taken> StartFrom(absl::string_view bytes, const WarmStartConfig& config,
                                  uint64_t model_step);

 private:
  struct Rep;
  explicit Network(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_H_
