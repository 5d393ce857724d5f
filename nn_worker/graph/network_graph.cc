#include "nn_worker/graph/network_graph.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/candidates.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/initial_values.h"
#include "nn_worker/graph/model/pass_key.h"

namespace satrap {

absl::Status NetworkGraph::Allocate() {
  ASSIGN_OR_RETURN(memory_,
                   AllocateActivations(graph_, options_.max_samples, options_.trains, backend_));
  // An evaluation has tasks, but computes no loss.
  const int64_t loss_samples = options_.trains ? options_.max_samples : 0;
  ASSIGN_OR_RETURN(losses_, TaskLosses::Create(TaskOutputsOf(options_.model), loss_samples,
                                               options_.inputs.max_candidates, backend_));
  for (const int output : graph_.outputs) {
    const size_t task = packed_outputs_.size();
    const int64_t cols =
        IsCandidateLoss(losses_->tasks()[task].loss) ? 1 : memory_.values[output].cols;
    ASSIGN_OR_RETURN(const Tensor packed,
                     AllocateTensor(backend_, DType::kF32, options_.max_samples, cols));
    packed_outputs_.push_back(packed);
  }
  ASSIGN_OR_RETURN(num_beyond_, AllocateTensor(backend_, DType::kF64, 1, 1));
  ASSIGN_OR_RETURN(pass_numbers_, AllocatePassNumbers(backend_));
  return absl::OkStatus();
}

absl::Status NetworkGraph::Bind(const NetworkValues& values, const Tensor& gradients,
                                const Tensor& control) {
  control_ = control;
  BindNodes();
  std::vector<std::vector<Tensor>> weights(graph_.nodes.size()), sums(graph_.nodes.size()),
      rounded(graph_.nodes.size()), kept(graph_.nodes.size());
  for (size_t i = 0; i < values.parameter_layout.arrays.size(); ++i) {
    const FlatArray& array = values.parameter_layout.arrays[i];
    weights[array.node].push_back(ViewOf(array, values.parameters));
    sums[array.node].push_back(options_.trains ? ViewOf(array, gradients) : Tensor());
    rounded[array.node].push_back(values.copies[i]);
  }
  for (const FlatArray& array : values.state_layout.arrays) {
    kept[array.node].push_back(ViewOf(array, values.states));
  }
  for (size_t node = 0; node < graph_.nodes.size(); ++node) {
    LayerBinding binding;
    binding.backend = backend_;
    binding.collective = options_.collective;
    binding.max_samples = options_.max_samples;
    binding.seed = LayerSeed(options_.seed, graph_.nodes[node].name);
    binding.control = control_;
    binding.pass_numbers = pass_numbers_;
    binding.parameters = weights[node];
    binding.gradients = sums[node];
    binding.states = kept[node];
    binding.copies = rounded[node];
    binding.xs = nodes_[node].xs;
    binding.ys = nodes_[node].ys;
    // If there is no memory for gradients, the tensors in `dys` are empty, and layers prepare no
    // gradients.
    binding.dys = nodes_[node].dys;
    binding.dxs = nodes_[node].dxs;
    binding.input_relu = InputRelu(static_cast<int>(node));
    RETURN_IF_ERROR(graph_.nodes[node].layer->Bind(binding));
  }
  for (const TaskOutput& task : losses_->tasks()) {
    if (task.loss == TaskConfig::BPR) {
      not_captured_ = "the number of pairs of the loss BPR differs from part to part";
    }
  }
  MakePassParts();
  return absl::OkStatus();
}

// A layer that prevents a capture divides the pass: a part that is captured ends before it, and
// another one begins after it.
void NetworkGraph::MakePassParts() {
  size_t begin = 0;
  const auto add_up_to = [&](size_t stage, bool captured) {
    if (stage == begin) return;
    pass_parts_.push_back({captured, [this, begin, stage] { return RunStages(begin, stage); }});
    begin = stage;
  };
  for (size_t stage = 0; stage < num_stages(); ++stage) {
    if (stage == loss_stage()) continue;
    const bool is_backward = stage > loss_stage();
    const BoundNode& node = nodes_[is_backward ? 2 * nodes_.size() - stage : stage];
    if (!node.layer->prevents_capture() || (is_backward && !node.needs_backward)) continue;
    add_up_to(stage, /*captured=*/true);
    add_up_to(stage + 1, /*captured=*/false);
  }
  add_up_to(num_stages(), /*captured=*/true);
}

absl::Status NetworkGraph::RunStages(size_t begin, size_t end) {
  if (begin < loss_stage()) RETURN_IF_ERROR(Forward(begin, std::min(end, loss_stage())));
  if (begin <= loss_stage() && loss_stage() < end) Loss();
  const size_t first = std::max(begin, loss_stage() + 1);
  if (first >= end) return absl::OkStatus();
  return Backward(num_stages() - end, num_stages() - first);
}

// Backward runs the nodes from last to first: the first node to reach a tensor assigns its
// gradient, later ones add. For an output, the loss writes the gradient first. The gradient of a
// tensor within a concatenation lies in the concatenation's gradient. concat_layout.h ensures that
// the concatenation is the first node to reach such a tensor. The concatenation then has nothing to
// do.
void NetworkGraph::BindNodes() {
  std::vector<bool> has_gradient(graph_.tensors.size(), false);
  for (const int output : graph_.outputs) has_gradient[output] = true;
  nodes_.resize(graph_.nodes.size());
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    const GraphNode& node = graph_.nodes[i];
    BoundNode& bound = nodes_[i];
    bound.layer = node.layer.get();
    for (const int t : node.outputs) {
      bound.ys.push_back(memory_.values[t]);
      bound.dys.push_back(memory_.gradients[t]);
      bound.needs_backward |= graph_.tensors[t].needs_gradient;
      // Either no layer reads the tensor, or none of the layers that read it passes a gradient on.
      if (graph_.tensors[t].needs_gradient && !has_gradient[t] && !graph_.IsOutput(t)) {
        bound.unread_dys.push_back(memory_.gradients[t]);
      }
    }
    for (const int t : node.inputs) {
      bound.xs.push_back(memory_.values[t]);
      bound.of_part.push_back(graph_.tensors[t].of_part);
      bound.dxs.push_back({memory_.gradients[t], has_gradient[t]});
      // Padding that became NaN would stay NaN if products only added to it. Only the product that
      // made the tensor reads this padding.
      if (has_gradient[t] && graph_.tensors[t].producer >= 0 &&
          graph_.nodes[graph_.tensors[t].producer].layer->multiplies_padding()) {
        bound.dxs.back().tensor.zero_cols = 0;
      }
      if (bound.needs_backward) has_gradient[t] = true;
    }
  }
}

// Backward runs the nodes from last to first, so the first reader in the order of Forward is the
// last to add to a gradient. Layers are bound in the order of Forward, so the layer that made the
// input is bound already.
PreparedLinear* NetworkGraph::InputRelu(int node) const {
  const std::vector<int>& inputs = graph_.nodes[node].inputs;
  if (inputs.empty() || std::count(inputs.begin(), inputs.end(), inputs[0]) > 1) return nullptr;
  const GraphTensor& tensor = graph_.tensors[inputs[0]];
  if (tensor.producer < 0 || graph_.nodes[tensor.producer].outputs[0] != inputs[0]) return nullptr;
  for (const int reader : tensor.consumers) {
    if (reader < node && nodes_[reader].needs_backward) return nullptr;
  }
  return graph_.nodes[tensor.producer].layer->relu_product();
}

// Prepares everything that a pass needs in addition to its operations. None of this is captured.
void NetworkGraph::BeginPass(int64_t samples, const PassContext& pass) {
  CHECK(samples >= 0 && samples <= options_.max_samples) << samples;
  CHECK(pass.candidates >= 0 && pass.candidates <= options_.inputs.max_candidates);
  samples_ = samples;
  pass_ = pass;
  if (pass_.training) WritePassNumbers(backend_, pass_.numbers(), pass_numbers_);
}

absl::Status NetworkGraph::Forward(size_t begin, size_t end) {
  const ProfilerRange range(backend_, "forward");
  for (size_t i = begin; i < end; ++i) {
    BoundNode& node = nodes_[i];
    SetRows(samples_, pass_.candidates, &node);
    RETURN_IF_ERROR(node.layer->Forward(pass_, node.xs, node.ys));
  }
  return absl::OkStatus();
}

void NetworkGraph::Loss() {
  const ProfilerRange range(backend_, "loss");
  std::vector<Tensor> outputs, output_gradients;
  for (size_t t = 0; t < graph_.outputs.size(); ++t) {
    outputs.push_back(Output(static_cast<int>(t)));
    const Tensor gradient = memory_.gradients[graph_.outputs[t]];
    CHECK(!gradient.empty()) << "output " << t << " depends on nothing that can be trained";
    output_gradients.push_back(gradient.FirstRows(samples_));
  }
  losses_->Compute(control_, outputs, output_gradients);
}

absl::Status NetworkGraph::Backward(size_t begin, size_t end) {
  const ProfilerRange range(backend_, "backward");
  for (size_t i = end; i-- > begin;) {
    BoundNode& node = nodes_[i];
    if (!node.needs_backward) continue;
    for (const Tensor& dy : node.unread_dys) backend_->Fill(dy, 0);
    RETURN_IF_ERROR(node.layer->Backward(pass_, node.xs, node.ys, node.dys, node.dxs));
  }
  return absl::OkStatus();
}

absl::Status NetworkGraph::Backward() {
  CHECK(pass_.training) << "Backward of an evaluation";
  return Backward(0, nodes_.size());
}

void NetworkGraph::SetRows(int64_t samples, int64_t candidates, BoundNode* node) {
  for (std::vector<Tensor>* tensors : {&node->ys, &node->dys, &node->unread_dys}) {
    for (Tensor& tensor : *tensors) tensor.rows = samples;
  }
  for (size_t i = 0; i < node->xs.size(); ++i) {
    node->xs[i].rows = node->dxs[i].tensor.rows = node->of_part[i] ? candidates : samples;
  }
}

absl::Status NetworkGraph::Train(absl::Span<const LossTargets> targets) {
  losses_->Set(targets, samples_);
  // A graph of a size that occurs only once would not be worth the cost of capturing it, so only
  // full parts run from graphs.
  const bool full =
      samples_ == options_.max_samples || (samples_ > 0 && samples_ == options_.min_full_samples);
  if (!full || !not_captured_.empty() || !graphs_.active()) return RunStages(0, num_stages());
  PassKey key = {samples_, pass_.candidates};
  losses_->AppendShape(&key);
  return graphs_.Run(key, pass_parts_);
}

std::string NetworkGraph::WhyNoGraphs() const {
  if (!options_.trains) return "nothing is trained";
  if (!options_.graph_capture) return "nn_worker.graph_capture is false";
  if (!graphs_.active()) return "the device does not support graphs";
  return not_captured_;
}

void NetworkGraph::Loss(absl::Span<const LossTargets> targets) {
  losses_->Set(targets, samples_);
  Loss();
}

Tensor NetworkGraph::ReadableOutput(int task) const {
  Tensor output = Output(task);
  const TaskConfig::Loss loss = losses_->tasks()[task].loss;
  if (!IsCandidateLoss(loss)) return output;
  // The scores of the positives in a batch lie on the diagonal.
  if (loss == TaskConfig::IN_BATCH_SOFTMAX) ++output.stride;
  output.cols = 1;
  output.zero_cols = 0;
  return output;
}

std::vector<float> NetworkGraph::ReadLogits(int task) {
  // Logits lie a cache line apart, and a device is slow to copy a column of single values to the
  // host. So they are packed first.
  const Tensor packed = packed_outputs_[task].FirstRows(samples_);
  backend_->Copy(ReadableOutput(task), packed, /*add=*/false);
  return ReadFloats(backend_, packed);
}

int64_t NetworkGraph::CountGradientsBeyond(const Tensor& gradients, float limit) {
  backend_->Fill(num_beyond_, 0);
  backend_->CountBeyond(gradients, limit, num_beyond_);
  for (const Tensor& block : memory_.input_gradient_blocks) {
    backend_->CountBeyond(block.FirstRows(samples_), limit, num_beyond_);
  }
  for (const Tensor& block : memory_.part_gradient_blocks) {
    backend_->CountBeyond(block.FirstRows(pass_.candidates), limit, num_beyond_);
  }
  return static_cast<int64_t>(ReadDoubles(backend_, num_beyond_)[0]);
}

absl::Status NetworkGraph::EndStep() {
  for (BoundNode& node : nodes_) RETURN_IF_ERROR(node.layer->EndStep());
  return absl::OkStatus();
}

}  // namespace satrap
