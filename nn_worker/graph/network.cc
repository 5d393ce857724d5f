#include "nn_worker/graph/network.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
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

  absl::StatusOr<float*> AllocateFloats(int64_t count) {
    ASSIGN_OR_RETURN(void* data, backend->Allocate(std::max<int64_t>(1, count) * sizeof(float)));
    return static_cast<float*>(data);
  }
  // Where the host reads and writes the memory of the backend; null if it cannot.
  template <typename T>
  T* View(T* device) const {
    backend->Sync();
    return static_cast<T*>(backend->HostView(device));
  }
  Tensor Logits() const { return memory.values[graph.output].FirstRows(samples); }
  NamedArray Fetch(const FlatArray& array, absl::string_view suffix, float* buffer) const {
    NamedArray out{absl::StrCat(array.name, suffix), array.spec.rows, array.spec.cols, {}};
    out.values.resize(out.rows * out.cols);
    backend->CopyOut(buffer + array.begin, absl::MakeSpan(out.values));
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
  float* parameters = nullptr;
  float* gradients = nullptr;  // and kExtraSums
  float* states = nullptr;
  std::vector<float*> slots;

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
  ASSIGN_OR_RETURN(parameters, AllocateFloats(parameter_layout.size));
  ASSIGN_OR_RETURN(gradients, AllocateFloats(parameter_layout.size + kExtraSums));
  ASSIGN_OR_RETURN(states, AllocateFloats(state_layout.size));
  ASSIGN_OR_RETURN(float* all_slots, AllocateFloats(parameter_layout.size * slot_names.size()));
  for (size_t slot = 0; slot < slot_names.size(); ++slot) {
    slots.push_back(all_slots + slot * parameter_layout.size);
  }
  for (Tensor* column : {&labels, &weights, &mask, &packed_logits}) {
    ASSIGN_OR_RETURN(float* data, AllocateFloats(options.max_samples));
    *column = TensorF32(data, options.max_samples, 1);
  }
  ASSIGN_OR_RETURN(void* sums, backend->Allocate(3 * sizeof(double)));
  loss_sums = TensorF64(static_cast<double*>(sums), 1, 2);
  non_finite = TensorF64(static_cast<double*>(sums) + 2, 1, 1);
  return absl::OkStatus();
}

void Network::Rep::SetInitialValues() {
  for (const FlatArray& array : parameter_layout.arrays) {
    backend->CopyIn(InitialValues(options.seed, array.name, array.spec), parameters + array.begin);
  }
  for (const FlatArray& array : state_layout.arrays) {
    backend->CopyIn(InitialValues(options.seed, array.name, array.spec), states + array.begin);
  }
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    backend->Fill(TensorF32(slots[slot], 1, parameter_layout.size),
                  optimizer->initial_value(static_cast<int>(slot)));
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

Tensor Network::OnHost(Tensor view) const {
  view.data = rep_->View(view.data);
  CHECK(view.data != nullptr) << "the host cannot reach the memory of this backend";
  return view;
}

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
  // Rows of a tensor lie a cache line apart; CopyOut takes values without gaps.
  rep_->backend->Copy(rep_->Logits(), rep_->packed_logits.FirstRows(rep_->samples), /*add=*/false);
  std::vector<float> logits(rep_->samples);
  rep_->backend->CopyOut(rep_->packed_logits.f32(), absl::MakeSpan(logits));
  rep_->backend->Sync();
  return logits;
}

void Network::Loss(absl::Span<const float> labels, absl::Span<const float> weights,
                   absl::Span<const float> mask) {
  Rep& rep = *rep_;
  const auto copy_in = [&rep](absl::Span<const float> host, Tensor device) -> Tensor {
    CHECK(static_cast<int64_t>(host.size()) == rep.samples) << host.size();
    rep.backend->CopyIn(host, device.f32());
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
  double sums[2];
  rep_->backend->CopyOut(rep_->loss_sums.f64(), absl::MakeSpan(sums));
  rep_->backend->Sync();
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
  backend->CountNonFinite(TensorF32(rep_->gradients, 1, rep_->parameter_layout.size),
                          rep_->non_finite);
  for (const Tensor& block : rep_->memory.input_gradient_blocks) {
    backend->CountNonFinite(block.FirstRows(rep_->samples), rep_->non_finite);
  }
  double count = 0;
  backend->CopyOut(rep_->non_finite.f64(), absl::MakeSpan(&count, 1));
  backend->Sync();
  return static_cast<int64_t>(count);
}

absl::Status Network::AllReduce(absl::Span<float> sums) {
  CHECK(sums.size() <= kExtraSums) << sums.size();
  Rep& rep = *rep_;
  const int64_t size = rep.parameter_layout.size;
  // In place where the host can reach the gradients; otherwise there and back.
  float* host = rep.View(rep.gradients);
  const bool copied = host == nullptr;
  if (copied) {
    rep.host_reduction.resize(size + kExtraSums);
    host = rep.host_reduction.data();
    rep.backend->CopyOut(rep.gradients, absl::MakeSpan(host, size));
    rep.backend->Sync();
  }
  // There is room for the sums behind the gradients, so that one allreduce carries both.
  std::copy(sums.begin(), sums.end(), host + size);
  RETURN_IF_ERROR(rep.options.collective->AllReduceSum(absl::MakeSpan(host, size + sums.size())));
  std::copy_n(host + size, sums.size(), sums.begin());
  if (copied) rep.backend->CopyIn(absl::MakeSpan(host, size), rep.gradients);
  return absl::OkStatus();
}

absl::Span<float> Network::gradients() {
  const Tensor all = TensorF32(rep_->gradients, 1, rep_->parameter_layout.size);
  return absl::MakeSpan(OnHost(all).f32(), all.cols);
}
absl::Span<float> Network::parameters() {
  const Tensor all = TensorF32(rep_->parameters, 1, rep_->parameter_layout.size);
  return absl::MakeSpan(OnHost(all).f32(), all.cols);
}

absl::Status Network::Step(const DenseStep& step) {
  const int64_t size = rep_->parameter_layout.size;
  std::vector<Tensor> slots;
  for (float* slot : rep_->slots) slots.push_back(TensorF32(slot, 1, size));
  rep_->optimizer->Step(rep_->backend, step.step, CoefficientsOf(rep_->options.optimizer, step),
                        TensorF32(rep_->gradients, 1, size), TensorF32(rep_->parameters, 1, size),
                        slots);
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
    NamedArray copy = rep_->Fetch(array, "", rep_->parameters);
    rep_->backend->Sync();
    return copy;
  }
  return absl::NotFoundError(absl::StrCat("no parameter \"", name, "\""));
}

std::string Network::Save() {
  std::vector<NamedArray> arrays;
  rep_->VisitSaved(LoadScope::kAll,
                   [&](const FlatArray& array, const std::string& name, float* buffer) {
                     arrays.push_back(rep_->Fetch(array, "", buffer));
                     arrays.back().name = name;
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
  std::vector<std::pair<const NamedArray*, float*>> copies;
  rep_->VisitSaved(scope, [&](const FlatArray& array, const std::string& name, float* buffer) {
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
    copies.emplace_back(&saved, buffer + array.begin);
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
  for (const auto& [array, to] : copies) rep_->backend->CopyIn(array->values, to);
  return absl::OkStatus();
}

}  // namespace satrap
