#include "nn_worker/graph/network_memory.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

absl::StatusOr<Tensor> AllocateBlock(int64_t rows, int64_t cols, Backend* backend) {
  return AllocateTensor(backend, DType::kF32, rows, cols, PaddedStride(DType::kF32, cols));
}

bool IsFreeInput(const Graph& graph, int tensor) {
  return tensor < graph.num_inputs && graph.tensors[tensor].within < 0 &&
         !graph.tensors[tensor].consumers.empty();
}

void Append(int node, const std::string& layer, ParameterSpec spec, FlatLayout* layout) {
  FlatArray array;
  array.name = absl::StrCat(layer, ".", spec.name);
  array.node = node;
  array.begin = layout->size;
  const int64_t values = spec.rows * spec.cols;
  if (values > 0) layout->size += PaddedStride(DType::kF32, values);
  array.spec = std::move(spec);
  layout->arrays.push_back(std::move(array));
}

}  // namespace

absl::StatusOr<ActivationMemory> AllocateActivations(const Graph& graph, int64_t max_samples,
                                                     Backend* backend) {
  ActivationMemory memory;
  const int count = static_cast<int>(graph.tensors.size());
  memory.values.resize(count);
  memory.gradients.resize(count);

  int64_t input_cols = 0;
  for (int t = 0; t < graph.num_inputs; ++t) {
    if (IsFreeInput(graph, t)) input_cols += ShapeSize(graph.tensors[t].shape);
  }
  ASSIGN_OR_RETURN(const Tensor inputs, AllocateBlock(max_samples, input_cols, backend));
  ASSIGN_OR_RETURN(const Tensor input_gradients, AllocateBlock(max_samples, input_cols, backend));
  if (input_cols > 0) memory.input_gradient_blocks.push_back(input_gradients);

  int64_t column = 0;
  for (int t = 0; t < count; ++t) {
    const GraphTensor& tensor = graph.tensors[t];
    const int64_t cols = ShapeSize(tensor.shape);
    if (IsFreeInput(graph, t)) {
      memory.values[t] = inputs.Columns(column, cols);
      if (tensor.needs_gradient) memory.gradients[t] = input_gradients.Columns(column, cols);
      column += cols;
    } else if (t >= graph.num_inputs && tensor.within < 0) {
      ASSIGN_OR_RETURN(memory.values[t], AllocateBlock(max_samples, cols, backend));
      if (!tensor.needs_gradient) continue;
      ASSIGN_OR_RETURN(memory.gradients[t], AllocateBlock(max_samples, cols, backend));
    }
  }

  // A concatenation may itself lie within another, so its own place is found first.
  std::vector<bool> scanned(count, false);
  const std::function<void(int)> place = [&](int t) {
    const GraphTensor& tensor = graph.tensors[t];
    if (tensor.within < 0 || !memory.values[t].empty()) return;
    place(tensor.within);
    const int64_t cols = ShapeSize(tensor.shape);
    memory.values[t] = memory.values[tensor.within].Columns(tensor.within_column, cols);
    if (!tensor.needs_gradient) return;
    memory.gradients[t] = memory.gradients[tensor.within].Columns(tensor.within_column, cols);
    int owner = t;
    while (graph.tensors[owner].within >= 0) owner = graph.tensors[owner].within;
    if (t < graph.num_inputs && !scanned[owner]) {
      memory.input_gradient_blocks.push_back(memory.gradients[owner]);
      scanned[owner] = true;
    }
  };
  for (int t = 0; t < count; ++t) place(t);
  return memory;
}

FlatLayout LayoutParameters(const Graph& graph) {
  FlatLayout layout;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    for (ParameterSpec& spec : graph.nodes[node].layer->parameters()) {
      Append(static_cast<int>(node), graph.nodes[node].name, std::move(spec), &layout);
    }
  }
  return layout;
}

FlatLayout LayoutStates(const Graph& graph) {
  FlatLayout layout;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    for (const StateSpec& state : graph.nodes[node].layer->states()) {
      ParameterSpec spec;
      spec.name = state.name;
      spec.cols = state.cols;
      spec.scale = state.initial;
      Append(static_cast<int>(node), graph.nodes[node].name, std::move(spec), &layout);
    }
  }
  return layout;
}

Tensor ViewOf(const FlatArray& array, const Tensor& buffer) {
  return buffer.Columns(array.begin, array.spec.rows * array.spec.cols)
      .Reshaped(array.spec.rows, array.spec.cols);
}

}  // namespace satrap
