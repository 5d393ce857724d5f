// Turns the gradients of a Network's parameters into steps: their sums over the ranks, the control
// of a step, the optimizer and its state, and the scale of the gradients.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_TRAINING_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_TRAINING_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nn_worker/graph/network_options.h"
#include "nn_worker/graph/network_values.h"
#include "nn_worker/graph/parameter_ranges.h"
#include "nn_worker/graph/saved/dense_start.h"
#include "nn_worker/graph/step/gradient_sums.h"
#include "nn_worker/graph/step/loss_scale.h"
#include "nn_worker/optimizer/dense_optimizer.h"

namespace satrap {

class NetworkTraining {
 public:
  // `options` and `values` must outlive this object.
  NetworkTraining(const NetworkOptions& options, DenseOptimizer optimizer, NetworkValues* values)
      : options_(options),
        backend_(options.backend),
        values_(*values),
        optimizer_(std::move(optimizer)),
        gradient_scale_(options.gradient_scale) {}

  // Call after NetworkValues::Allocate. INVALID_ARGUMENT for settings whose pattern matches no
  // parameter; RESOURCE_EXHAUSTED. Without options.trains only the control is allocated.
  absl::Status Allocate();
  void SetInitialState();

  Tensor gradients() const { return gradients_; }  // (1, size); empty if nothing is trained
  Tensor control() const { return control_; }      // of the last step, with the next one's scale
  const GradientScale& gradient_scale() const { return gradient_scale_; }
  const DenseOptimizer& optimizer() const { return optimizer_; }
  // Set in a run that began from a model.
  const DenseStart& start() const { return start_; }
  void set_start(const DenseStart& start) { start_ = start; }
  void AppendState(std::vector<KeptArray>* kept) const;

  // These do what the methods of Network with the same names do, but Step neither ends the step of
  // the layers (NetworkGraph::EndStep, which for example updates running statistics) nor reads back
  // the gradient scale (EndStep below). The caller calls both after Step.
  absl::Status StartReduce();
  absl::Status FinishReduce();
  double GradientSquares(const DenseStep& step, const StepTotals& totals);
  void Step(const DenseStep& step, const StepTotals& totals, float clip_factor);
  void EndStep();
  StepControl ReadControl();

 private:
  absl::Status AllocateGradients();
  std::vector<std::vector<WeightCopy>> CopiesOfRanges() const;
  void WriteControl(const StepControl& value);

  const NetworkOptions& options_;
  Backend* const backend_;
  NetworkValues& values_;
  const DenseOptimizer optimizer_;
  std::vector<ParameterRange> ranges_;
  std::vector<std::vector<WeightCopy>> copies_of_ranges_;  // by range
  Tensor gradients_;
  std::vector<Tensor> states_;  // (1, size) each
  Tensor control_;
  GradientScale gradient_scale_;  // as in the control
  Tensor step_sums_;              // (1, kNumStepSums)
  DenseStart start_;
  bool reducing_ = false;               // between StartReduce and FinishReduce
  std::unique_ptr<GradientSums> sums_;  // last: a sum ends before its memory is freed
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_TRAINING_H_
