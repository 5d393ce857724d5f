#include "nn_worker/graph/network_memory.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

absl::StatusOr<Tensor> AllocateBlock(DType dtype, int64_t rows, int64_t cols, Backend* backend) {
  return AllocateTensor(backend, dtype, rows, cols, PaddedStride(dtype, cols));
}

// The columns of a tensor, padding included.
int64_t PaddedColumns(const Graph& graph, int tensor, const Backend& backend) {
  const GraphTensor& of = graph.tensors[tensor];
  const int64_t cols = ShapeSize(of.shape);
  const auto multiplies = [&graph](int node) {
    return graph.nodes[node].layer->multiplies_padding();
  };
  const bool used = (of.producer >= 0 && multiplies(of.producer)) ||
                    std::any_of(of.consumers.begin(), of.consumers.end(), multiplies);
  return used && of.within < 0 && !of.of_part ? backend.PaddedWidth(cols) : cols;
}

// Allocates a separate block for a tensor.
absl::StatusOr<Tensor> AllocateTensorOf(const Graph& graph, int tensor, int64_t max_samples,
                                        Backend* backend) {
  const GraphTensor& of = graph.tensors[tensor];
  ASSIGN_OR_RETURN(
      const Tensor block,
      AllocateBlock(of.dtype, max_samples, PaddedColumns(graph, tensor, *backend), backend));
  return block.Padded(max_samples, ShapeSize(of.shape));
}

bool IsFreeInput(const Graph& graph, int tensor) {
  return tensor < graph.num_inputs && graph.tensors[tensor].within < 0 &&
         !graph.tensors[tensor].consumers.empty() && !graph.tensors[tensor].of_part;
}

// Inputs that belong to the part, not to its samples, have a different number of rows.
absl::Status AllocatePartInputs(const Graph& graph, bool trains, Backend* backend,
                                ActivationMemory* memory) {
  for (int t = 0; t < graph.num_inputs; ++t) {
    const GraphTensor& tensor = graph.tensors[t];
    if (!tensor.of_part || tensor.consumers.empty()) continue;
    const int64_t rows = tensor.shape[0], cols = tensor.shape[1];
    ASSIGN_OR_RETURN(memory->values[t], AllocateBlock(tensor.dtype, rows, cols, backend));
    if (!trains) continue;
    ASSIGN_OR_RETURN(memory->gradients[t], AllocateBlock(tensor.dtype, rows, cols, backend));
    memory->part_gradient_blocks.push_back(memory->gradients[t]);
  }
  return absl::OkStatus();
}

// Allocates one block for all graph inputs of `dtype` that lie outside any concatenation.
absl::Status AllocateFreeInputs(const Graph& graph, DType dtype, int64_t max_samples, bool trains,
                                Backend* backend, ActivationMemory* memory) {
  std::vector<int> inputs;
  int64_t all_cols = 0;
  for (int t = 0; t < graph.num_inputs; ++t) {
    if (!IsFreeInput(graph, t) || graph.tensors[t].dtype != dtype) continue;
    inputs.push_back(t);
    all_cols += PaddedColumns(graph, t, *backend);
  }
  if (inputs.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor values, AllocateBlock(dtype, max_samples, all_cols, backend));
  Tensor gradients;
  if (trains) {
    ASSIGN_OR_RETURN(gradients, AllocateBlock(dtype, max_samples, all_cols, backend));
    if (all_cols > 0) memory->input_gradient_blocks.push_back(gradients);
  }
  int64_t column = 0;
  for (const int t : inputs) {
    const int64_t cols = ShapeSize(graph.tensors[t].shape);
    const int64_t padded = PaddedColumns(graph, t, *backend);
    memory->values[t] = values.Columns(column, padded).Padded(max_samples, cols);
    if (trains && graph.tensors[t].needs_gradient) {
      memory->gradients[t] = gradients.Columns(column, cols);
    }
    column += padded;
  }
  return absl::OkStatus();
}

// `padded_rows` and `padded_cols` are those of the matrix, padding included.
void Append(int node, const std::string& layer, ParameterSpec spec, int64_t padded_rows,
            int64_t padded_cols, FlatLayout* layout) {
  FlatArray array;
  array.name = absl::StrCat(layer, ".", spec.name);
  array.node = node;
  array.begin = layout->size;
  array.padded_rows = padded_rows;
  array.padded_cols = padded_cols;
  const int64_t values = padded_rows * padded_cols;
  if (values > 0) layout->size += PaddedStride(DType::kF32, values);
  array.spec = std::move(spec);
  layout->arrays.push_back(std::move(array));
}

}  // namespace

absl::StatusOr<ActivationMemory> AllocateActivations(const Graph& graph, int64_t max_samples,
                                                     bool trains, Backend* backend) {
  ActivationMemory memory;
  const int count = static_cast<int>(graph.tensors.size());
  memory.values.resize(count);
  memory.gradients.resize(count);

  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    RETURN_IF_ERROR(AllocateFreeInputs(graph, dtype, max_samples, trains, backend, &memory));
  }
  RETURN_IF_ERROR(AllocatePartInputs(graph, trains, backend, &memory));
  for (int t = graph.num_inputs; t < count; ++t) {
    const GraphTensor& tensor = graph.tensors[t];
    if (tensor.within >= 0) continue;
    ASSIGN_OR_RETURN(memory.values[t], AllocateTensorOf(graph, t, max_samples, backend));
    if (!trains || !tensor.needs_gradient) continue;
    ASSIGN_OR_RETURN(memory.gradients[t], AllocateTensorOf(graph, t, max_samples, backend));
  }

  // A concatenation may itself lie within another one. So before a tensor is placed, the
  // concatenation that it lies within is placed.
  std::vector<bool> scanned(count, false);
  const std::function<void(int)> place = [&](int t) {
    const GraphTensor& tensor = graph.tensors[t];
    if (tensor.within < 0 || !memory.values[t].empty()) return;
    place(tensor.within);
    const int64_t cols = ShapeSize(tensor.shape);
    memory.values[t] = memory.values[tensor.within].Columns(tensor.within_column, cols);
    if (!trains || !tensor.needs_gradient) return;
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

FlatLayout LayoutParameters(const Graph& graph, const Backend* backend) {
  FlatLayout layout;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const GraphNode& node = graph.nodes[n];
    for (ParameterSpec& spec : node.layer->parameters()) {
      int64_t rows = spec.rows, cols = spec.cols;
      if (backend != nullptr && node.layer->multiplies_padding()) {
        if (rows > 1) rows = PaddedColumns(graph, node.inputs[0], *backend);
        cols = PaddedColumns(graph, node.outputs[0], *backend);
      }
      Append(static_cast<int>(n), node.name, std::move(spec), rows, cols, &layout);
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
      Append(static_cast<int>(node), graph.nodes[node].name, std::move(spec), /*padded_rows=*/1,
             state.cols, &layout);
    }
  }
  return layout;
}

Tensor ViewOf(const FlatArray& array, const Tensor& buffer) {
  return buffer.Columns(array.begin, array.padded_rows * array.padded_cols)
      .Reshaped(array.padded_rows, array.padded_cols)
      .Padded(array.spec.rows, array.spec.cols);
}

absl::StatusOr<std::vector<Tensor>> AllocateCopies(const FlatLayout& layout, DType dtype,
                                                   Backend* backend) {
  std::vector<Tensor> copies(layout.arrays.size());
  if (DTypeBytes(dtype) != 2) return copies;
  for (size_t i = 0; i < copies.size(); ++i) {
    const FlatArray& array = layout.arrays[i];
    const bool has_copy =
        array.spec.in_products || (array.spec.added_to_products && backend->takes_rounded_biases());
    if (!has_copy) continue;
    ASSIGN_OR_RETURN(const Tensor block,
                     AllocateBlock(dtype, array.padded_rows, array.padded_cols, backend));
    copies[i] = block.Padded(array.spec.rows, array.spec.cols);
  }
  return copies;
}

}  // namespace satrap
