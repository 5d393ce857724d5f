#include "nn_worker/graph/network.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
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

// A node with its tensors, made once. Only their number of rows changes from pass to pass.
struct BoundNode {
  Layer* layer = nullptr;
  std::vector<Tensor> xs, ys, dys;
  std::vector<GradientTarget> dxs;
  std::vector<Tensor> unread_dys;  // gradients of outputs that nobody reads: set to zero
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
  explicit Rep(const NetworkOptions& options) : options(options), backend(options.backend) {}

  absl::Status Allocate();
  absl::Status BindLayers();
  void BindNodes();
  void SetInitialValues();

  Tensor Logits() const { return memory.values[graph.output].FirstRows(samples); }
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
  Tensor parameters, states;  // (1, size)
  Tensor gradients;           // (1, size); room for kExtraSums lies behind it
  std::vector<Tensor> slots;  // (1, size) each

  Tensor labels, weights, mask;  // (max_samples, 1)
  Tensor packed_logits;          // (max_samples, 1), without the gaps that Logits() may have
  Tensor loss_sums;              // F64 (1, 2)
  Tensor non_finite;             // F64 (1, 1)

  // What AllReduce adds up if the host cannot reach the gradients; otherwise empty.
  std::vector<float> host_reduction;

  int64_t samples = 0;
  PassContext pass;
};

absl::Status Network::Rep::Allocate() {
  ASSIGN_OR_RETURN(memory, AllocateActivations(graph, options.max_samples, backend));
  parameter_layout = LayoutParameters(graph);
  state_layout = LayoutStates(graph);
  slot_names = optimizer->slot_names();
  const int64_t size = parameter_layout.size;
  ASSIGN_OR_RETURN(parameters, AllocateTensor(backend, DType::kF32, 1, size));
  ASSIGN_OR_RETURN(gradients, AllocateTensor(backend, DType::kF32, 1, size + kExtraSums));
  gradients = gradients.Columns(0, size);
  ASSIGN_OR_RETURN(states, AllocateTensor(backend, DType::kF32, 1, state_layout.size));
  ASSIGN_OR_RETURN(const Tensor all_slots,
                   AllocateTensor(backend, DType::kF32, slot_names.size(), size));
  for (size_t slot = 0; slot < slot_names.size(); ++slot) slots.push_back(all_slots.Rows(slot, 1));
  for (Tensor* column : {&labels, &weights, &mask, &packed_logits}) {
    ASSIGN_OR_RETURN(*column, AllocateTensor(backend, DType::kF32, options.max_samples, 1));
  }
  ASSIGN_OR_RETURN(const Tensor sums, AllocateTensor(backend, DType::kF64, 1, 3));
  loss_sums = sums.Columns(0, 2);
  non_finite = sums.Columns(2, 1);
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

absl::Status Network::Rep::BindLayers() {
  std::vector<std::vector<Tensor>> values(graph.nodes.size()), sums(graph.nodes.size()),
      kept(graph.nodes.size());
  for (const FlatArray& array : parameter_layout.arrays) {
    values[array.node].push_back(ViewOf(array, parameters));
    sums[array.node].push_back(ViewOf(array, gradients));
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
    binding.parameters = values[node];
    binding.gradients = sums[node];
    binding.states = kept[node];
    RETURN_IF_ERROR(graph.nodes[node].layer->Bind(binding));
  }
  return absl::OkStatus();
}

// Backward runs the nodes from last to first: the first node to reach a tensor assigns its
// gradient, later ones add. A tensor within a concatenation has its gradient in the concatenation's
// own; there the concatenation must be the first to reach it, as concat_layout.h makes sure, and
// has nothing to do.
void Network::Rep::BindNodes() {
  std::vector<bool> has_gradient(graph.tensors.size(), false);
  nodes.resize(graph.nodes.size());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const GraphNode& node = graph.nodes[i];
    BoundNode& bound = nodes[i];
    bound.layer = node.layer.get();
    for (const int t : node.inputs) {
      bound.xs.push_back(memory.values[t]);
      bound.dxs.push_back({memory.gradients[t], has_gradient[t]});
      has_gradient[t] = true;
    }
    for (const int t : node.outputs) {
      bound.ys.push_back(memory.values[t]);
      bound.dys.push_back(memory.gradients[t]);
      bound.needs_backward |= graph.tensors[t].needs_gradient;
      if (graph.tensors[t].consumers.empty() && t != graph.output) {
        bound.unread_dys.push_back(memory.gradients[t]);
      }
    }
  }
}

Network::Network(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Network::~Network() = default;

absl::StatusOr<std::unique_ptr<Network>> Network::Create(const NetworkOptions& options) {
  CHECK(options.backend != nullptr && options.collective != nullptr);
  CHECK(options.max_samples > 0) << options.max_samples;
  auto rep = std::make_unique<Rep>(options);
  ASSIGN_OR_RETURN(rep->graph, BuildGraph(options.model, options.inputs));
  ASSIGN_OR_RETURN(rep->optimizer, NewDenseOptimizer(options.optimizer));
  RETURN_IF_ERROR(rep->Allocate());
  rep->SetInitialValues();
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

std::vector<float> Network::ReadLogits() {
  // Logits lie a cache line apart, and a device copies a column of single values slowly.
  const Tensor packed = rep_->packed_logits.FirstRows(rep_->samples);
  rep_->backend->Copy(rep_->Logits(), packed, /*add=*/false);
  return ReadFloats(rep_->backend, packed);
}

void Network::Loss(absl::Span<const float> labels, absl::Span<const float> weights,
                   absl::Span<const float> mask) {
  Rep& rep = *rep_;
  const auto copy_in = [&rep](absl::Span<const float> host, Tensor device) -> Tensor {
    CHECK(static_cast<int64_t>(host.size()) == rep.samples) << host.size();
    CopyIn(rep.backend, host, device.FirstRows(rep.samples));
    return device.FirstRows(rep.samples);
  };
  const Tensor labels_in = copy_in(labels, rep.labels);
  const Tensor weights_in = weights.empty() ? Tensor() : copy_in(weights, rep.weights);
  const Tensor mask_in = mask.empty() ? Tensor() : copy_in(mask, rep.mask);
  Tensor dlogits = rep.memory.gradients[rep.graph.output];
  CHECK(!dlogits.empty()) << "nothing of the model can be trained";
  rep.backend->BceWithLogits(rep.Logits(), labels_in, weights_in, mask_in,
                             dlogits.FirstRows(rep.samples), rep.loss_sums);
}

LossSums Network::ReadLoss() {
  const std::vector<double> sums = ReadDoubles(rep_->backend, rep_->loss_sums);
  return {sums[0], sums[1]};
}

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

absl::Status Network::AllReduce(absl::Span<float> sums) {
  CHECK(sums.size() <= kExtraSums) << sums.size();
  Rep& rep = *rep_;
  const int64_t size = rep.parameter_layout.size;
  // In place where the host can reach the gradients; otherwise there and back.
  rep.backend->Sync();
  float* host = static_cast<float*>(rep.backend->HostView(rep.gradients.data));
  const bool copied = host == nullptr;
  if (copied) {
    rep.host_reduction.resize(size + kExtraSums);
    host = rep.host_reduction.data();
    CopyOut(rep.backend, rep.gradients, absl::MakeSpan(host, size));
    rep.backend->Sync();
  }
  // There is room for the sums behind the gradients, so that one allreduce carries both.
  std::copy(sums.begin(), sums.end(), host + size);
  RETURN_IF_ERROR(rep.options.collective->AllReduceSum(absl::MakeSpan(host, size + sums.size())));
  std::copy_n(host + size, sums.size(), sums.begin());
  if (copied) CopyIn(rep.backend, absl::MakeSpan(host, size), rep.gradients);
  return absl::OkStatus();
}

Tensor Network::gradients() const { return rep_->gradients; }
Tensor Network::parameters() const { return rep_->parameters; }

absl::Status Network::Step(const DenseStep& step) {
  rep_->optimizer->Step(rep_->backend, step.step, CoefficientsOf(rep_->options.optimizer, step),
                        rep_->gradients, rep_->parameters, rep_->slots);
  for (BoundNode& node : rep_->nodes) RETURN_IF_ERROR(node.layer->EndStep());
  return absl::OkStatus();
}

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
  return absl::OkStatus();
}

}  // namespace satrap
