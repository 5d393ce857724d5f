// What a Network consists of, for the sources that implement it.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_REP_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_REP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/config/candidates.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/averaged_weights.h"
#include "nn_worker/graph/gradient_sums.h"
#include "nn_worker/graph/graph.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/graph/network_checkpoint.h"
#include "nn_worker/graph/network_memory.h"
#include "nn_worker/graph/parameter_ranges.h"
#include "nn_worker/graph/pass_graphs.h"
#include "nn_worker/graph/pass_key.h"

namespace satrap {

// A node with its tensors, made once. Only their number of rows changes from pass to pass.
struct BoundNode {
  Layer* layer = nullptr;
  std::vector<Tensor> xs, ys, dys;
  std::vector<GradientTarget> dxs;
  std::vector<bool> of_part;       // by input
  std::vector<Tensor> unread_dys;  // gradients that no layer makes: set to zero
  bool needs_backward = false;
};

struct Network::Rep {
  explicit Rep(const NetworkOptions& options)
      : options(options),
        backend(options.backend),
        gradient_scale(options.gradient_scale),
        graphs(options.backend, options.graph_capture, options.on_graph_refusal) {}

  absl::Status Allocate();
  absl::Status AllocateTraining();  // what an evaluation does without
  void BindNodes();
  absl::Status BindLayers();  // after BindNodes
  // As LayerBinding has it.
  PreparedLinear* InputRelu(int node) const;
  void SetInitialValues();
  void BeginPass(int64_t part_samples, const PassContext& context);
  // Of nodes [begin, end), in this order.
  absl::Status Forward(size_t begin, size_t end);
  void Loss();
  // Of nodes [begin, end), from the last to the first.
  absl::Status Backward(size_t begin, size_t end);
  // The stages of a training pass of N nodes: stage i < N is Forward of node i, stage N is Loss,
  // and stage N + 1 + i is Backward of node N - 1 - i.
  size_t loss_stage() const { return nodes.size(); }
  size_t num_stages() const { return 2 * nodes.size() + 1; }
  absl::Status RunStages(size_t begin, size_t end);
  void MakePassParts();  // after BindLayers
  void WriteControl(const StepControl& value) {
    CopyIn(backend, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(&value), sizeof(value)),
           control);
  }
  // Rounds the parameters anew. After every change of them but a step's, which does it by itself.
  void RefreshCopies();
  std::vector<std::vector<WeightCopy>> CopiesOfRanges() const;
  // Layers read the averages of the parameters, or the parameters as they are trained. The latter
  // must be the case wherever else parameters are read or written. Without averages nothing
  // happens.
  void ShowAverages(bool show) {
    if (averages.has_value() && averages->Show(show)) RefreshCopies();
  }

  Tensor Output(int task) const { return memory.values[graph.outputs[task]].FirstRows(samples); }
  // Of a candidate loss the positives' scores alone: the columns of candidates belong to the part.
  Tensor ReadableOutput(int task) const {
    Tensor output = Output(task);
    const TaskConfig::Loss loss = losses->tasks()[task].loss;
    if (!IsCandidateLoss(loss)) return output;
    // Positives in a batch lie on the diagonal.
    if (loss == TaskConfig::IN_BATCH_SOFTMAX) ++output.stride;
    output.cols = 1;
    return output;
  }
  // What is saved and loaded.
  std::vector<KeptArray> KeptModel(bool with_averages) const {
    std::vector<KeptArray> kept;
    AppendKept(parameter_layout, parameters, "", &kept);
    AppendKept(state_layout, states, "", &kept);
    if (with_averages) {
      AppendKept(parameter_layout, averages->averages(), kAverageSuffix, &kept);
    }
    return kept;
  }
  void AppendOptimizerState(std::vector<KeptArray>* kept) const {
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      AppendKept(parameter_layout, slots[slot], absl::StrCat("#", optimizer.slots[slot].name),
                 kept);
    }
  }

  const NetworkOptions options;
  Backend* const backend;
  Graph graph;
  ActivationMemory memory;
  std::vector<BoundNode> nodes;
  DenseOptimizer optimizer;
  std::vector<ParameterRange> ranges;

  FlatLayout parameter_layout;
  FlatLayout state_layout;
  Tensor parameters, states;   // (1, size)
  std::vector<Tensor> copies;  // in 16 bits, by array of parameter_layout; empty: has none
  std::vector<std::vector<WeightCopy>> copies_of_ranges;  // by range
  // Empty in a network that is not trained.
  Tensor gradients;           // (1, size)
  std::vector<Tensor> slots;  // (1, size) each
  absl::optional<AveragedWeights> averages;

  Tensor control;                // of the last Step, and the next one's gradient scale
  GradientScale gradient_scale;  // what the control says of it
  Tensor step_sums;              // (1, kNumStepSums)
  absl::optional<TaskLosses> losses;
  std::vector<Tensor> packed_outputs;  // by task (max_samples, outputs), without gaps
  Tensor num_beyond;                   // F64 (1, 1)

  DenseStart start;  // of a run that began from a model

  int64_t samples = 0;
  PassContext pass;
  Tensor pass_numbers;               // of `pass`, for layers
  std::vector<PassPart> pass_parts;  // of a training pass
  std::string not_captured;          // why not; empty: full parts of samples are
  PassGraphs graphs;

  bool reducing = false;               // between StartReduce and FinishReduce
  std::unique_ptr<GradientSums> sums;  // last: a sum ends before what it adds up is gone
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_REP_H_
