// The graph of a Network, bound to memory: its passes, its losses, and the device graphs that run
// the passes of full parts.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_GRAPH_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_GRAPH_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "nn_worker/graph/model/graph.h"
#include "nn_worker/graph/model/task_losses.h"
#include "nn_worker/graph/network_memory.h"
#include "nn_worker/graph/network_options.h"
#include "nn_worker/graph/network_values.h"
#include "nn_worker/graph/pass_graphs.h"

namespace satrap {

class NetworkGraph {
 public:
  // `options` must outlive this object.
  NetworkGraph(const NetworkOptions& options, Graph graph)
      : options_(options),
        backend_(options.backend),
        graph_(std::move(graph)),
        graphs_(options.backend, options.graph_capture, options.on_graph_refusal) {}
  NetworkGraph(const NetworkGraph&) = delete;
  NetworkGraph& operator=(const NetworkGraph&) = delete;

  // RESOURCE_EXHAUSTED.
  absl::Status Allocate();
  // Gives the layers their tensors. `gradients` are the gradients of the parameters; they are empty
  // if nothing is trained. REQUIRES: Allocate has been called
  absl::Status Bind(const NetworkValues& values, const Tensor& gradients, const Tensor& control);

  const Graph& graph() const { return graph_; }
  const ActivationMemory& memory() const { return memory_; }
  const PassContext& pass() const { return pass_; }  // the last one
  int64_t num_outputs(int task) const { return packed_outputs_[task].cols; }
  int64_t graph_launches() const { return graphs_.launches(); }
  std::string WhyNoGraphs() const;

  // These do what the methods of Network with the same names do.
  void BeginPass(int64_t samples, const PassContext& pass);
  absl::Status Forward() { return Forward(0, nodes_.size()); }
  absl::Status Train(absl::Span<const LossTargets> targets);  // after BeginPass
  void Loss(absl::Span<const LossTargets> targets);
  LossSums ReadLoss() { return losses_->Read(); }
  absl::Status Backward();
  std::vector<float> ReadLogits(int task);
  // The number of values in `gradients` (those of the parameters) and in the gradients of inputs
  // whose magnitude is above `limit`, or that are not finite.
  int64_t CountGradientsBeyond(const Tensor& gradients, float limit);
  absl::Status EndStep();

 private:
  // A node with its tensors. It is made once; only the tensors' number of rows changes from pass to
  // pass.
  struct BoundNode {
    Layer* layer = nullptr;
    std::vector<Tensor> xs, ys, dys;
    std::vector<GradientTarget> dxs;
    std::vector<bool> of_part;       // by input
    std::vector<Tensor> unread_dys;  // gradients that no layer makes: set to zero
    bool needs_backward = false;
  };

  void BindNodes();
  // The LayerBinding.input_relu of `node`.
  PreparedLinear* InputRelu(int node) const;
  void MakePassParts();
  static void SetRows(int64_t samples, int64_t candidates, BoundNode* node);
  // Runs Forward of nodes [begin, end), from the first to the last.
  absl::Status Forward(size_t begin, size_t end);
  void Loss();
  // Runs Backward of nodes [begin, end), from the last to the first.
  absl::Status Backward(size_t begin, size_t end);
  // The stages of a training pass of N nodes: stage i < N is Forward of node i, stage N is Loss,
  // and stage N + 1 + i is Backward of node N - 1 - i.
  size_t loss_stage() const { return nodes_.size(); }
  size_t num_stages() const { return 2 * nodes_.size() + 1; }
  absl::Status RunStages(size_t begin, size_t end);
  Tensor Output(int task) const { return memory_.values[graph_.outputs[task]].FirstRows(samples_); }
  // The part of a task's output that may be read. With a candidate loss this is only the scores of
  // the positives, because the columns of candidates belong to the part.
  Tensor ReadableOutput(int task) const;

  const NetworkOptions& options_;
  Backend* const backend_;
  Graph graph_;
  ActivationMemory memory_;
  std::vector<BoundNode> nodes_;
  absl::optional<TaskLosses> losses_;
  std::vector<Tensor> packed_outputs_;  // by task (max_samples, outputs), without gaps
  Tensor control_;
  Tensor num_beyond_;  // F64 (1, 1)

  int64_t samples_ = 0;
  PassContext pass_;
  Tensor pass_numbers_;               // of `pass_`, for layers
  std::vector<PassPart> pass_parts_;  // of a training pass
  std::string not_captured_;          // why full parts are not captured; empty: they are
  PassGraphs graphs_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_GRAPH_H_
