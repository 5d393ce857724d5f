#include "nn_worker/graph/network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/candidates.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/gradient_squares.h"
#include "nn_worker/graph/graph.h"
#include "nn_worker/graph/graph_builder.h"
#include "nn_worker/graph/initial_values.h"
#include "nn_worker/graph/network_memory.h"
#include "nn_worker/graph/network_rep.h"
#include "nn_worker/graph/output_model.h"
#include "nn_worker/graph/parameter_ranges.h"
#include "nn_worker/operation/step_normalizer.h"
#include "nn_worker/optimizer/dense_optimizer_factory.h"

namespace satrap {
namespace {

void SetRows(int64_t samples, int64_t candidates, BoundNode* node) {
  for (std::vector<Tensor>* tensors : {&node->ys, &node->dys, &node->unread_dys}) {
    for (Tensor& tensor : *tensors) tensor.rows = samples;
  }
  for (size_t i = 0; i < node->xs.size(); ++i) {
    node->xs[i].rows = node->dxs[i].tensor.rows = node->of_part[i] ? candidates : samples;
  }
}

}  // namespace

absl::Status Network::Rep::Allocate() {
  ASSIGN_OR_RETURN(memory,
                   AllocateActivations(graph, options.max_samples, options.trains, backend));
  parameter_layout = LayoutParameters(graph);
  state_layout = LayoutStates(graph);
  ASSIGN_OR_RETURN(ranges,
                   MakeParameterRanges(parameter_layout, options.optimizer, optimizer.rule));
  const int64_t size = parameter_layout.size;
  ASSIGN_OR_RETURN(parameters, AllocateTensor(backend, DType::kF32, 1, size));
  if (options.trains) RETURN_IF_ERROR(AllocateTraining());
  ASSIGN_OR_RETURN(copies, AllocateCopies(parameter_layout, options.dtype, backend));
  copies_of_ranges = CopiesOfRanges();
  ASSIGN_OR_RETURN(states, AllocateTensor(backend, DType::kF32, 1, state_layout.size));
  if (options.optimizer.has_averaged_weights()) {
    const float decay = options.optimizer.averaged_weights().decay();
    ASSIGN_OR_RETURN(averages, AveragedWeights::Create(decay, parameters, backend));
  }
  // An evaluation has tasks, but computes no loss.
  const int64_t loss_samples = options.trains ? options.max_samples : 0;
  ASSIGN_OR_RETURN(losses, TaskLosses::Create(TaskOutputsOf(options.model), loss_samples,
                                              options.inputs.max_candidates, backend));
  for (const int output : graph.outputs) {
    const size_t task = packed_outputs.size();
    const int64_t cols =
        IsCandidateLoss(losses->tasks()[task].loss) ? 1 : memory.values[output].cols;
    ASSIGN_OR_RETURN(const Tensor packed,
                     AllocateTensor(backend, DType::kF32, options.max_samples, cols));
    packed_outputs.push_back(packed);
  }
  ASSIGN_OR_RETURN(control, AllocateControl(backend));
  StepControl first;
  first.gradient_scale = gradient_scale.scale;
  first.clean_steps = gradient_scale.clean_steps;
  WriteControl(first);
  ASSIGN_OR_RETURN(step_sums, AllocateTensor(backend, DType::kF32, 1, kNumStepSums));
  ASSIGN_OR_RETURN(num_beyond, AllocateTensor(backend, DType::kF64, 1, 1));
  ASSIGN_OR_RETURN(pass_numbers, AllocatePassNumbers(backend));
  return absl::OkStatus();
}

absl::Status Network::Rep::AllocateTraining() {
  const int64_t size = parameter_layout.size;
  ASSIGN_OR_RETURN(gradients, AllocateTensor(backend, DType::kF32, 1, size));
  ASSIGN_OR_RETURN(sums,
                   NewGradientSums(backend, options.collective, options.reduction, gradients));
  ASSIGN_OR_RETURN(const Tensor all_slots,
                   AllocateTensor(backend, DType::kF32, optimizer.slots.size(), size));
  for (int64_t slot = 0; slot < all_slots.rows; ++slot) slots.push_back(all_slots.Rows(slot, 1));
  return absl::OkStatus();
}

void Network::Rep::SetInitialValues() {
  for (const FlatArray& array : parameter_layout.arrays) {
    CopyIn(backend, InitialValues(options.seed, array.name, array.spec), ViewOf(array, parameters));
  }
  for (const FlatArray& array : state_layout.arrays) {
    CopyIn(backend, InitialValues(options.seed, array.name, array.spec), ViewOf(array, states));
  }
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    backend->Fill(slots[slot], optimizer.slots[slot].initial_value);
  }
  if (averages.has_value()) averages->Reset();
}

void Network::Rep::RefreshCopies() {
  for (size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].empty()) continue;
    backend->Copy(ViewOf(parameter_layout.arrays[i], parameters), copies[i], /*add=*/false);
  }
}

// An array lies in one range: settings go by the parameter's name.
std::vector<std::vector<WeightCopy>> Network::Rep::CopiesOfRanges() const {
  std::vector<std::vector<WeightCopy>> of_ranges;
  for (const ParameterRange& range : ranges) {
    of_ranges.emplace_back();
    for (size_t i = 0; i < copies.size(); ++i) {
      const int64_t begin = parameter_layout.arrays[i].begin - range.begin;
      if (copies[i].empty() || begin < 0 || begin >= range.size) continue;
      of_ranges.back().push_back({begin, copies[i]});
    }
  }
  return of_ranges;
}

absl::Status Network::Rep::BindLayers() {
  std::vector<std::vector<Tensor>> values(graph.nodes.size()), sums(graph.nodes.size()),
      rounded(graph.nodes.size()), kept(graph.nodes.size());
  for (size_t i = 0; i < parameter_layout.arrays.size(); ++i) {
    const FlatArray& array = parameter_layout.arrays[i];
    values[array.node].push_back(ViewOf(array, parameters));
    sums[array.node].push_back(options.trains ? ViewOf(array, gradients) : Tensor());
    rounded[array.node].push_back(copies[i]);
  }
  for (const FlatArray& array : state_layout.arrays) {
    kept[array.node].push_back(ViewOf(array, states));
  }
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    LayerBinding binding;
    binding.backend = backend;
    binding.collective = options.collective;
    binding.max_samples = options.max_samples;
    binding.seed = LayerSeed(options.seed, graph.nodes[node].name);
    binding.control = control;
    binding.pass_numbers = pass_numbers;
    binding.parameters = values[node];
    binding.gradients = sums[node];
    binding.states = kept[node];
    binding.copies = rounded[node];
    binding.xs = nodes[node].xs;
    binding.ys = nodes[node].ys;
    // Without memory for gradients these are empty, and layers prepare none.
    binding.dys = nodes[node].dys;
    binding.dxs = nodes[node].dxs;
    binding.input_relu = InputRelu(static_cast<int>(node));
    RETURN_IF_ERROR(graph.nodes[node].layer->Bind(binding));
  }
  for (const TaskOutput& task : losses->tasks()) {
    if (task.loss == TaskConfig::BPR) {
      not_captured = "each part has its own number of pairs for the loss BPR";
    }
  }
  return absl::OkStatus();
}

// A layer that prevents a capture divides the pass: a part that is captured ends before it, and
// another one begins after it.
void Network::Rep::MakePassParts() {
  size_t begin = 0;
  const auto add_up_to = [&](size_t stage, bool captured) {
    if (stage == begin) return;
    pass_parts.push_back({captured, [this, begin, stage] { return RunStages(begin, stage); }});
    begin = stage;
  };
  for (size_t stage = 0; stage < num_stages(); ++stage) {
    if (stage == loss_stage()) continue;
    const bool is_backward = stage > loss_stage();
    const BoundNode& node = nodes[is_backward ? 2 * nodes.size() - stage : stage];
    if (!node.layer->prevents_capture() || (is_backward && !node.needs_backward)) continue;
    add_up_to(stage, /*captured=*/true);
    add_up_to(stage + 1, /*captured=*/false);
  }
  add_up_to(num_stages(), /*captured=*/true);
}

absl::Status Network::Rep::RunStages(size_t begin, size_t end) {
  if (begin < loss_stage()) RETURN_IF_ERROR(Forward(begin, std::min(end, loss_stage())));
  if (begin <= loss_stage() && loss_stage() < end) Loss();
  const size_t first = std::max(begin, loss_stage() + 1);
  if (first >= end) return absl::OkStatus();
  return Backward(num_stages() - end, num_stages() - first);
}

// Backward runs the nodes from last to first: the first node to reach a tensor assigns its
// gradient, later ones add. To an output the loss writes first. A tensor within a concatenation has
// its gradient in the concatenation's own; there the concatenation must be the first to reach it,
// as concat_layout.h makes sure, and has nothing to do.
void Network::Rep::BindNodes() {
  std::vector<bool> has_gradient(graph.tensors.size(), false);
  for (const int output : graph.outputs) has_gradient[output] = true;
  nodes.resize(graph.nodes.size());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const GraphNode& node = graph.nodes[i];
    BoundNode& bound = nodes[i];
    bound.layer = node.layer.get();
    for (const int t : node.outputs) {
      bound.ys.push_back(memory.values[t]);
      bound.dys.push_back(memory.gradients[t]);
      bound.needs_backward |= graph.tensors[t].needs_gradient;
      // Nobody reads it, or only layers that pass no gradient on.
      if (graph.tensors[t].needs_gradient && !has_gradient[t] && !graph.IsOutput(t)) {
        bound.unread_dys.push_back(memory.gradients[t]);
      }
    }
    for (const int t : node.inputs) {
      bound.xs.push_back(memory.values[t]);
      bound.of_part.push_back(graph.tensors[t].of_part);
      bound.dxs.push_back({memory.gradients[t], has_gradient[t]});
      if (bound.needs_backward) has_gradient[t] = true;
    }
  }
}

// Backward runs the nodes from last to first, so the first reader in the order of Forward is the
// last to add to a gradient. Layers are bound in the order of Forward, so the layer that made it is
// bound.
PreparedLinear* Network::Rep::InputRelu(int node) const {
  const std::vector<int>& inputs = graph.nodes[node].inputs;
  if (inputs.empty() || std::count(inputs.begin(), inputs.end(), inputs[0]) > 1) return nullptr;
  const GraphTensor& tensor = graph.tensors[inputs[0]];
  if (tensor.producer < 0 || graph.nodes[tensor.producer].outputs[0] != inputs[0]) return nullptr;
  for (const int reader : tensor.consumers) {
    if (reader < node && nodes[reader].needs_backward) return nullptr;
  }
  return graph.nodes[tensor.producer].layer->relu_product();
}

Network::Network(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Network::~Network() = default;

absl::StatusOr<std::unique_ptr<Network>> Network::Create(const NetworkOptions& options) {
  CHECK(options.backend != nullptr && options.collective != nullptr);
  CHECK(options.max_samples > 0) << options.max_samples;
  NetworkOptions used = options;
  GraphUse use = GraphUse::kTraining;
  used.inputs.max_samples = options.max_samples;
  if (!options.outputs.empty()) {
    used.trains = false;
    ASSIGN_OR_RETURN(used.model, ModelOfOutputs(options.model, options.inputs, options.outputs));
    use = GraphUse::kOutputs;
    // Their patterns may name parameters that the outputs do not need.
    used.optimizer.clear_parameters();
  }
  auto rep = std::make_unique<Rep>(used);
  ASSIGN_OR_RETURN(rep->graph, BuildGraph(used.model, used.inputs, used.dtype, use));
  ASSIGN_OR_RETURN(rep->optimizer, NewDenseOptimizer(options.optimizer));
  RETURN_IF_ERROR(rep->Allocate());
  rep->SetInitialValues();
  rep->RefreshCopies();
  rep->BindNodes();
  RETURN_IF_ERROR(rep->BindLayers());
  rep->MakePassParts();
  return std::unique_ptr<Network>(new Network(std::move(rep)));
}

int Network::num_inputs() const { return rep_->graph.num_inputs; }

Tensor Network::input_view(int input) const {
  CHECK(input >= 0 && input < num_inputs());
  return rep_->memory.values[input];
}

Tensor Network::input_gradient(int input) const {
  CHECK(input >= 0 && input < num_inputs());
  return rep_->memory.gradients[input];
}

Backend* Network::backend() const { return rep_->backend; }

// What a pass needs besides operations: nothing of it is captured.
void Network::Rep::BeginPass(int64_t part_samples, const PassContext& context) {
  CHECK(part_samples >= 0 && part_samples <= options.max_samples) << part_samples;
  CHECK(context.candidates >= 0 && context.candidates <= options.inputs.max_candidates);
  samples = part_samples;
  pass = context;
  ShowAverages(!pass.training);
  if (pass.training) WritePassNumbers(backend, pass.numbers(), pass_numbers);
}

absl::Status Network::Rep::Forward(size_t begin, size_t end) {
  const ProfilerRange range(backend, "forward");
  for (size_t i = begin; i < end; ++i) {
    BoundNode& node = nodes[i];
    SetRows(samples, pass.candidates, &node);
    RETURN_IF_ERROR(node.layer->Forward(pass, node.xs, node.ys));
  }
  return absl::OkStatus();
}

absl::Status Network::Forward(int64_t samples, const PassContext& pass) {
  rep_->BeginPass(samples, pass);
  return rep_->Forward(0, rep_->nodes.size());
}

absl::Status Network::Train(int64_t samples, const PassContext& pass,
                            absl::Span<const LossTargets> targets) {
  Rep& rep = *rep_;
  CHECK(pass.training && rep.options.trains);
  rep.BeginPass(samples, pass);
  rep.losses->Set(targets, samples);
  // Sizes that come once would each cost a capture.
  const bool full = samples == rep.options.max_samples ||
                    (samples > 0 && samples == rep.options.min_full_samples);
  if (!full || !rep.not_captured.empty() || !rep.graphs.active()) {
    return rep.RunStages(0, rep.num_stages());
  }
  PassKey key = {samples, pass.candidates};
  rep.losses->AppendShape(&key);
  return rep.graphs.Run(key, rep.pass_parts);
}

int64_t Network::graph_launches() const { return rep_->graphs.launches(); }

std::string Network::WhyNoGraphs() const {
  if (!rep_->options.trains) return "nothing is trained";
  if (!rep_->options.graph_capture) return "nn_worker.graph_capture is false";
  if (!rep_->graphs.active()) return "the device makes no graphs";
  return rep_->not_captured;
}

std::vector<float> Network::ReadLogits(int task) {
  // Logits lie a cache line apart, and a device copies a column of single values slowly.
  const Tensor packed = rep_->packed_outputs[task].FirstRows(rep_->samples);
  rep_->backend->Copy(rep_->ReadableOutput(task), packed, /*add=*/false);
  return ReadFloats(rep_->backend, packed);
}

int Network::num_tasks() const { return static_cast<int>(rep_->graph.outputs.size()); }

int64_t Network::num_outputs(int task) const { return rep_->packed_outputs[task].cols; }

void Network::Loss(absl::Span<const float> labels, absl::Span<const float> weights,
                   absl::Span<const float> mask) {
  const LossTargets targets = {labels, weights, mask, {}};
  Loss(absl::MakeConstSpan(&targets, 1));
}

void Network::Loss(absl::Span<const LossTargets> targets) {
  rep_->losses->Set(targets, rep_->samples);
  rep_->Loss();
}

void Network::Rep::Loss() {
  const ProfilerRange range(backend, "loss");
  std::vector<Tensor> outputs, output_gradients;
  for (size_t t = 0; t < graph.outputs.size(); ++t) {
    outputs.push_back(Output(static_cast<int>(t)));
    const Tensor gradient = memory.gradients[graph.outputs[t]];
    CHECK(!gradient.empty()) << "nothing that output " << t << " reads can be trained";
    output_gradients.push_back(gradient.FirstRows(samples));
  }
  losses->Compute(control, outputs, output_gradients);
}

LossSums Network::ReadLoss() { return rep_->losses->Read(); }

absl::Status Network::Rep::Backward(size_t begin, size_t end) {
  const ProfilerRange range(backend, "backward");
  for (size_t i = end; i-- > begin;) {
    BoundNode& node = nodes[i];
    if (!node.needs_backward) continue;
    for (const Tensor& dy : node.unread_dys) backend->Fill(dy, 0);
    RETURN_IF_ERROR(node.layer->Backward(pass, node.xs, node.ys, node.dys, node.dxs));
  }
  return absl::OkStatus();
}

absl::Status Network::Backward() {
  CHECK(rep_->pass.training) << "Backward of an evaluation";
  return rep_->Backward(0, rep_->nodes.size());
}

int64_t Network::CountGradientsBeyond(float limit) {
  Backend* backend = rep_->backend;
  backend->Fill(rep_->num_beyond, 0);
  backend->CountBeyond(rep_->gradients, limit, rep_->num_beyond);
  for (const Tensor& block : rep_->memory.input_gradient_blocks) {
    backend->CountBeyond(block.FirstRows(rep_->samples), limit, rep_->num_beyond);
  }
  for (const Tensor& block : rep_->memory.part_gradient_blocks) {
    backend->CountBeyond(block.FirstRows(rep_->pass.candidates), limit, rep_->num_beyond);
  }
  return static_cast<int64_t>(ReadDoubles(backend, rep_->num_beyond)[0]);
}

int64_t Network::CountNonFiniteGradients() {
  return CountGradientsBeyond(std::numeric_limits<float>::max());
}

absl::Status Network::StartReduce() {
  const ProfilerRange range(rep_->backend, "start the sum of gradients");
  CHECK(!rep_->reducing) << "the gradients are being reduced";
  RETURN_IF_ERROR(rep_->sums->Start());
  rep_->reducing = true;
  return absl::OkStatus();
}

absl::Status Network::FinishReduce() {
  const ProfilerRange range(rep_->backend, "finish the sum of gradients");
  CHECK(rep_->reducing) << "no reduction was started";
  rep_->reducing = false;
  return rep_->sums->Finish();
}

Tensor Network::gradients() const { return rep_->gradients; }
Tensor Network::parameters() const {
  rep_->ShowAverages(false);
  return rep_->parameters;
}

double Network::GradientSquares(const DenseStep& step, const StepTotals& totals) {
  Rep& rep = *rep_;
  rep.ShowAverages(false);
  const double normalizer = StepNormalizer(
      totals.weight, static_cast<uint64_t>(std::llround(totals.samples)), step.global_batch_size);
  const auto scale = static_cast<float>(1.0 / (normalizer * rep.gradient_scale.scale));
  rep.backend->Sync();
  std::vector<float> copies[2];
  const auto on_host = [&](const Tensor& tensor, std::vector<float>* copy) {
    const void* const view = rep.backend->HostView(tensor.data);
    if (view == nullptr) *copy = ReadFloats(rep.backend, tensor);
    return absl::MakeConstSpan(view == nullptr ? copy->data() : static_cast<const float*>(view),
                               static_cast<size_t>(rep.parameter_layout.size));
  };
  absl::Span<const float> gradient = rep.sums->HostCopy();
  if (gradient.empty()) gradient = on_host(rep.gradients, &copies[0]);
  const absl::Span<const float> w = on_host(rep.parameters, &copies[1]);
  // Gaps between parameters are 0 in both buffers and add nothing.
  double squares = 0;
  for (const ParameterRange& range : rep.ranges) {
    squares += satrap::GradientSquares(scale, range.rule, gradient.subspan(range.begin, range.size),
                                       w.subspan(range.begin, range.size));
  }
  return squares;
}

absl::Status Network::Step(const DenseStep& step, const StepTotals& totals, float clip_factor) {
  Rep& rep = *rep_;
  const ProfilerRange range(rep.backend, "optimizer");
  float sums[kNumStepSums];
  sums[kStepSamples] = totals.samples;
  sums[kStepWeight] = totals.weight;
  sums[kStepNotFinite] = totals.not_finite;
  CopyIn(rep.backend, sums, rep.step_sums);
  const DenseOptimizerConfig& config = rep.options.optimizer;
  StepPlan plan = PlanOf(config, rep.optimizer, step, rep.start);
  plan.gradient_scale = rep.gradient_scale.rule;
  rep.backend->DecideStep(plan, rep.step_sums, rep.control);
  if (clip_factor != 1) {
    // Gradients are multiplied by the control's scale and by nothing else; L2 and L1 are added to
    // that.
    StepControl clipped = ReadControl();
    clipped.scale *= clip_factor;
    rep.WriteControl(clipped);
  }
  rep.ShowAverages(false);
  for (size_t r = 0; r < rep.ranges.size(); ++r) {
    const ParameterRange& range = rep.ranges[r];
    std::vector<Tensor> slots;
    for (const Tensor& slot : rep.slots) slots.push_back(slot.Columns(range.begin, range.size));
    OptimizerRule rule = range.rule;
    rule.l2 *= clip_factor;
    rule.l1 *= clip_factor;
    rep.backend->OptimizerStep(rep.control, rule, rep.gradients.Columns(range.begin, range.size),
                               rep.parameters.Columns(range.begin, range.size), slots,
                               rep.copies_of_ranges[r]);
  }
  if (rep.averages.has_value()) rep.averages->Follow(rep.control);
  for (BoundNode& node : rep.nodes) RETURN_IF_ERROR(node.layer->EndStep());
  // A scale that never moves is known without a wait.
  if (rep.gradient_scale.moves()) {
    const StepControl decided = ReadControl();
    rep.gradient_scale.scale = decided.gradient_scale;
    rep.gradient_scale.clean_steps = decided.clean_steps;
  }
  return absl::OkStatus();
}

const GradientScale& Network::gradient_scale() const { return rep_->gradient_scale; }

StepControl Network::ReadControl() { return satrap::ReadControl(rep_->backend, rep_->control); }

}  // namespace satrap
