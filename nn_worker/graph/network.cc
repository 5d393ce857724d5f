#include "nn_worker/graph/network.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/graph.h"
#include "nn_worker/graph/graph_builder.h"
#include "nn_worker/graph/initial_values.h"
#include "nn_worker/graph/network_memory.h"
#include "nn_worker/optimizer/dense_optimizer_factory.h"

namespace satrap {
namespace {

// Ranks wait for one another as long as it takes; Abort of the collective ends a wait.
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

// A node with its tensors, made once. Only their number of rows changes from pass to pass.
struct BoundNode {
  Layer* layer = nullptr;
  std::vector<Tensor> xs, ys, dys;
  std::vector<GradientTarget> dxs;
  std::vector<Tensor> unread_dys;  // gradients that no layer makes: set to zero
  bool needs_backward = false;
};

void SetRows(int64_t rows, BoundNode* node) {
  for (std::vector<Tensor>* tensors : {&node->xs, &node->ys, &node->dys, &node->unread_dys}) {
    for (Tensor& tensor : *tensors) tensor.rows = rows;
  }
  for (GradientTarget& dx : node->dxs) dx.tensor.rows = rows;
}

}  // namespace

struct Network::Rep {
  explicit Rep(const NetworkOptions& options)
      : options(options), backend(options.backend), gradient_scale(options.gradient_scale) {}

  absl::Status Allocate();
  absl::Status BindLayers();
  void BindNodes();
  void SetInitialValues();
  // Rounds the parameters anew. After every change of them.
  void RefreshCopies();

  Tensor Output(int task) const { return memory.values[graph.outputs[task]].FirstRows(samples); }
  // Filled by the next Sync.
  NamedArray Fetch(const FlatArray& array, const std::string& name, const Tensor& buffer) const {
    NamedArray out{name, array.spec.rows, array.spec.cols, {}};
    out.values.resize(out.rows * out.cols);
    CopyOut(backend, ViewOf(array, buffer), absl::MakeSpan(out.values));
    return out;
  }
  // Calls visit(array, name as saved, buffer it lies in) for all that a scope saves or loads.
  template <typename Visit>
  void VisitSaved(LoadScope scope, Visit visit) const {
    for (const FlatArray& array : parameter_layout.arrays) visit(array, array.name, parameters);
    for (const FlatArray& array : state_layout.arrays) visit(array, array.name, states);
    if (scope == LoadScope::kModel) return;
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      for (const FlatArray& array : parameter_layout.arrays) {
        visit(array, absl::StrCat(array.name, "#", slot_names[slot]), slots[slot]);
      }
    }
  }

  const NetworkOptions options;
  Backend* const backend;
  Graph graph;
  ActivationMemory memory;
  std::vector<BoundNode> nodes;
  std::unique_ptr<const DenseOptimizer> optimizer;
  std::vector<std::string> slot_names;

  FlatLayout parameter_layout;
  FlatLayout state_layout;
  Tensor parameters, states;   // (1, size)
  std::vector<Tensor> copies;  // in 16 bits, by array of parameter_layout; empty: has none
  Tensor gradients;            // (1, size)
  std::vector<Tensor> slots;   // (1, size) each

  Tensor control;                // of the last Step, and the next one's gradient scale
  GradientScale gradient_scale;  // what the control says of it
  Tensor step_sums;              // (1, kNumStepSums)
  absl::optional<TaskLosses> losses;
  std::vector<Tensor> packed_outputs;  // by task (max_samples, outputs), without gaps
  Tensor non_finite;                   // F64 (1, 1)

  // What the collective adds up if the host cannot reach the gradients, in pinned memory; else empty.
  absl::Span<float> host_gradients;
  std::unique_ptr<BackendEvent> copied_out;

  int64_t samples = 0;
  PassContext pass;

  std::unique_ptr<PendingSum> reduction;  // last: it ends before what it adds up is gone
};

absl::Status Network::Rep::Allocate() {
  ASSIGN_OR_RETURN(memory, AllocateActivations(graph, options.max_samples, backend));
  parameter_layout = LayoutParameters(graph);
  state_layout = LayoutStates(graph);
  slot_names = optimizer->slot_names();
  const int64_t size = parameter_layout.size;
  ASSIGN_OR_RETURN(parameters, AllocateTensor(backend, DType::kF32, 1, size));
  ASSIGN_OR_RETURN(gradients, AllocateTensor(backend, DType::kF32, 1, size));
  ASSIGN_OR_RETURN(copies, AllocateCopies(parameter_layout, options.dtype, backend));
  ASSIGN_OR_RETURN(copied_out, backend->NewEvent());
  backend->Sync();
  if (backend->HostView(gradients.data) == nullptr) {
    ASSIGN_OR_RETURN(void* const pinned, backend->AllocatePinned(gradients.size_bytes()));
    host_gradients = absl::MakeSpan(static_cast<float*>(pinned), size);
  }
  ASSIGN_OR_RETURN(states, AllocateTensor(backend, DType::kF32, 1, state_layout.size));
  ASSIGN_OR_RETURN(const Tensor all_slots,
                   AllocateTensor(backend, DType::kF32, slot_names.size(), size));
  for (size_t slot = 0; slot < slot_names.size(); ++slot) slots.push_back(all_slots.Rows(slot, 1));
  ASSIGN_OR_RETURN(losses,
                   TaskLosses::Create(TaskOutputsOf(options.model), options.max_samples, backend));
  for (const int output : graph.outputs) {
    ASSIGN_OR_RETURN(const Tensor packed, AllocateTensor(backend, DType::kF32, options.max_samples,
                                                         memory.values[output].cols));
    packed_outputs.push_back(packed);
  }
  ASSIGN_OR_RETURN(control, AllocateControl(backend));
  StepControl first;
  first.gradient_scale = gradient_scale.scale;
  first.clean_steps = gradient_scale.clean_steps;
  CopyIn(backend, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(&first), sizeof(first)),
         control);
  ASSIGN_OR_RETURN(step_sums, AllocateTensor(backend, DType::kF32, 1, kNumStepSums));
  ASSIGN_OR_RETURN(non_finite, AllocateTensor(backend, DType::kF64, 1, 1));
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
    backend->Fill(slots[slot], optimizer->initial_value(static_cast<int>(slot)));
  }
}

void Network::Rep::RefreshCopies() {
  for (size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].empty()) continue;
    backend->Copy(ViewOf(parameter_layout.arrays[i], parameters), copies[i], /*add=*/false);
  }
}

absl::Status Network::Rep::BindLayers() {
  std::vector<std::vector<Tensor>> values(graph.nodes.size()), sums(graph.nodes.size()),
      rounded(graph.nodes.size()), kept(graph.nodes.size());
  for (size_t i = 0; i < parameter_layout.arrays.size(); ++i) {
    const FlatArray& array = parameter_layout.arrays[i];
    values[array.node].push_back(ViewOf(array, parameters));
    sums[array.node].push_back(ViewOf(array, gradients));
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
    binding.parameters = values[node];
    binding.gradients = sums[node];
    binding.states = kept[node];
    binding.copies = rounded[node];
    RETURN_IF_ERROR(graph.nodes[node].layer->Bind(binding));
  }
  return absl::OkStatus();
}

// Backward runs the nodes from last to first: the first node to reach a tensor assigns its
// gradient, later ones add. To an output the loss comes first. A tensor within a concatenation has
// its gradient in the concatenation's own; there the concatenation must be the first to reach it, as
// concat_layout.h makes sure, and has nothing to do.
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
      bound.dxs.push_back({memory.gradients[t], has_gradient[t]});
      if (bound.needs_backward) has_gradient[t] = true;
    }
  }
}

Network::Network(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Network::~Network() = default;

absl::StatusOr<std::unique_ptr<Network>> Network::Create(const NetworkOptions& options) {
  CHECK(options.backend != nullptr && options.collective != nullptr);
  CHECK(options.max_samples > 0) << options.max_samples;
  auto rep = std::make_unique<Rep>(options);
  ASSIGN_OR_RETURN(rep->graph, BuildGraph(options.model, options.inputs, options.dtype));
  ASSIGN_OR_RETURN(rep->optimizer, NewDenseOptimizer(options.optimizer));
  RETURN_IF_ERROR(rep->Allocate());
  rep->SetInitialValues();
  rep->RefreshCopies();
  RETURN_IF_ERROR(rep->BindLayers());
  rep->BindNodes();
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

absl::Status Network::Forward(int64_t samples, const PassContext& pass) {
  CHECK(samples >= 0 && samples <= rep_->options.max_samples) << samples;
  rep_->samples = samples;
  rep_->pass = pass;
  for (BoundNode& node : rep_->nodes) {
    SetRows(samples, &node);
    RETURN_IF_ERROR(node.layer->Forward(rep_->pass, node.xs, node.ys));
  }
  return absl::OkStatus();
}

std::vector<float> Network::ReadLogits(int task) {
  // Logits lie a cache line apart, and a device copies a column of single values slowly.
  const Tensor packed = rep_->packed_outputs[task].FirstRows(rep_->samples);
  rep_->backend->Copy(rep_->Output(task), packed, /*add=*/false);
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
  std::vector<Tensor> outputs, gradients;
  for (int t = 0; t < num_tasks(); ++t) {
    outputs.push_back(rep_->Output(t));
    const Tensor gradient = rep_->memory.gradients[rep_->graph.outputs[t]];
    CHECK(!gradient.empty()) << "nothing that output " << t << " reads can be trained";
    gradients.push_back(gradient.FirstRows(rep_->samples));
  }
  rep_->losses->Compute(rep_->control, targets, outputs, gradients);
}

LossSums Network::ReadLoss() { return rep_->losses->Read(); }

absl::Status Network::Backward() {
  CHECK(rep_->pass.training) << "Backward of an evaluation";
  for (size_t i = rep_->nodes.size(); i-- > 0;) {
    BoundNode& node = rep_->nodes[i];
    if (!node.needs_backward) continue;
    for (const Tensor& dy : node.unread_dys) rep_->backend->Fill(dy, 0);
    RETURN_IF_ERROR(node.layer->Backward(rep_->pass, node.xs, node.ys, node.dys, node.dxs));
  }
  return absl::OkStatus();
}

int64_t Network::CountNonFiniteGradients() {
  Backend* backend = rep_->backend;
  backend->Fill(rep_->non_finite, 0);
  backend->CountNonFinite(rep_->gradients, rep_->non_finite);
  for (const Tensor& block : rep_->memory.input_gradient_blocks) {
    backend->CountNonFinite(block.FirstRows(rep_->samples), rep_->non_finite);
  }
  return static_cast<int64_t>(ReadDoubles(backend, rep_->non_finite)[0]);
}

// In place where the host can reach the gradients; otherwise there and back.
absl::Status Network::StartReduce() {
  Rep& rep = *rep_;
  CHECK(rep.reduction == nullptr) << "the gradients are being reduced";
  Collective* const collective = rep.options.collective;
  absl::Span<float> host = rep.host_gradients;
  if (host.empty()) {
    rep.backend->Sync();
    host = absl::MakeSpan(static_cast<float*>(rep.backend->HostView(rep.gradients.data)),
                          rep.parameter_layout.size);
  } else {
    CopyOut(rep.backend, rep.gradients, host);
    rep.backend->Record(Lane::kOperations, rep.copied_out.get());
    RETURN_IF_ERROR(AwaitEvent(rep.backend, rep.copied_out.get(), kForever,
                               [&] { return !collective->status().ok(); }));
  }
  rep.reduction = collective->StartAllReduceSum(host);
  return absl::OkStatus();
}

absl::Status Network::FinishReduce() {
  Rep& rep = *rep_;
  CHECK(rep.reduction != nullptr) << "no reduction was started";
  RETURN_IF_ERROR(rep.reduction->Wait(kForever));
  rep.reduction.reset();
  if (!rep.host_gradients.empty()) CopyIn(rep.backend, rep.host_gradients, rep.gradients);
  return absl::OkStatus();
}

Tensor Network::gradients() const { return rep_->gradients; }
Tensor Network::parameters() const { return rep_->parameters; }

absl::Status Network::Step(const DenseStep& step, const StepTotals& totals) {
  Rep& rep = *rep_;
  float sums[kNumStepSums];
  sums[kStepSamples] = totals.samples;
  sums[kStepWeight] = totals.weight;
  sums[kStepNotFinite] = totals.not_finite;
  CopyIn(rep.backend, sums, rep.step_sums);
  const DenseOptimizerConfig& config = rep.options.optimizer;
  StepPlan plan = PlanOf(config, *rep.optimizer, step);
  plan.gradient_scale = rep.gradient_scale.rule;
  rep.backend->DecideStep(plan, rep.step_sums, rep.control);
  rep.optimizer->Step(rep.backend, rep.control, config.l2(), rep.gradients, rep.parameters,
                      rep.slots);
  rep.RefreshCopies();
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

int64_t Network::num_parameters() const {
  int64_t count = 0;
  for (const FlatArray& array : rep_->parameter_layout.arrays) {
    count += array.spec.rows * array.spec.cols;
  }
  return count;
}

std::vector<std::string> Network::parameter_names() const {
  std::vector<std::string> names;
  for (const FlatArray& array : rep_->parameter_layout.arrays) names.push_back(array.name);
  return names;
}

absl::StatusOr<NamedArray> Network::Parameter(absl::string_view name) {
  for (const FlatArray& array : rep_->parameter_layout.arrays) {
    if (array.name != name) continue;
    NamedArray copy = rep_->Fetch(array, array.name, rep_->parameters);
    rep_->backend->Sync();
    return copy;
  }
  return absl::NotFoundError(absl::StrCat("no parameter \"", name, "\""));
}

std::string Network::Save() {
  std::vector<NamedArray> arrays;
  rep_->VisitSaved(LoadScope::kAll,
                   [&](const FlatArray& array, const std::string& name, const Tensor& buffer) {
                     arrays.push_back(rep_->Fetch(array, name, buffer));
                   });
  rep_->backend->Sync();
  return EncodeArrays(arrays);
}

absl::Status Network::Load(absl::string_view bytes, LoadScope scope) {
  ASSIGN_OR_RETURN(const std::vector<NamedArray> arrays, DecodeArrays(bytes));
  absl::flat_hash_map<absl::string_view, const NamedArray*> by_name;
  for (const NamedArray& array : arrays) {
    // To load only the model, ignore optimizer state: it may be of another optimizer.
    if (scope == LoadScope::kModel && array.name.find('#') != std::string::npos) continue;
    by_name[array.name] = &array;
  }
  // First check every array, then copy: a checkpoint that does not fit must change nothing.
  absl::Status status;
  std::vector<std::pair<const NamedArray*, Tensor>> copies;
  rep_->VisitSaved(
      scope, [&](const FlatArray& array, const std::string& name, const Tensor& buffer) {
        if (!status.ok()) return;
        const auto found = by_name.find(name);
        if (found == by_name.end()) {
          status = absl::FailedPreconditionError(
              absl::StrCat("dense checkpoint has no \"", name, "\", which this model needs"));
          return;
        }
        const NamedArray& saved = *found->second;
        if (saved.rows != array.spec.rows || saved.cols != array.spec.cols) {
          status = absl::FailedPreconditionError(
              absl::StrCat("dense checkpoint: \"", name, "\" is ", saved.rows, " x ", saved.cols,
                           ", this model needs ", array.spec.rows, " x ", array.spec.cols));
          return;
        }
        copies.emplace_back(&saved, ViewOf(array, buffer));
      });
  RETURN_IF_ERROR(status);
  if (copies.size() != by_name.size()) {
    for (const auto& [array, to] : copies) by_name.erase(array->name);
    std::string extra;
    for (const NamedArray& array : arrays) {
      if (extra.empty() && by_name.contains(array.name)) extra = array.name;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("dense checkpoint has \"", extra, "\", which this model does not have"));
  }
  for (const auto& [array, to] : copies) CopyIn(rep_->backend, array->values, to);
  rep_->RefreshCopies();
  return absl::OkStatus();
}

}  // namespace satrap
