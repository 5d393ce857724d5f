// The memory of a Network: which graph tensor and which parameter lies where.
//
//   activations  One block for each tensor, its rows padded to a multiple of a cache line. A tensor
//                that lies within a concatenation is a range of columns of that block. Graph inputs
//                outside any concatenation share one block for each dtype. Gradients likewise.
//   parameters   One flat buffer each for the values, the gradients, every state array of the
//                optimizer, and the states of layers. All F32; a network that computes in 16 bits
//                has copies of some of them, with padded rows.
//
// On a device, tensors that linear layers multiply have padding (tensor.h), up to
// Backend::PaddedWidth, and so have the parameters of these layers in every flat buffer and in
// their copies. A value within a concatenation has no padding, because its neighbour follows
// directly. The gradient of a graph input has none either, because it is scanned together with
// others.
//
// Padding begins as 0 and stays 0 in parameters and their copies. Only products write to the
// padding of values and gradients. It becomes NaN where a value or gradient next to it is infinite
// or NaN. Then the gradient of some parameter, without its padding, is not finite either, so the
// step does not apply. The next product that assigns the values or gradients writes zeros.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_MEMORY_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/graph/model/graph.h"

namespace satrap {

// Values and gradients of the graph's tensors, (max_samples, size) each.
struct ActivationMemory {
  std::vector<Tensor> values;     // empty: an input that nobody reads
  std::vector<Tensor> gradients;  // empty: not needed
  // The whole blocks that the gradients of graph inputs lie in, to be scanned for values that are
  // not finite: a few wide scans instead of many narrow ones.
  std::vector<Tensor> input_gradient_blocks;
  // Like input_gradient_blocks, but for inputs that belong to the part: (max rows of a part, dim).
  std::vector<Tensor> part_gradient_blocks;
};
// Allocates no gradients unless `trains`.
absl::StatusOr<ActivationMemory> AllocateActivations(const Graph& graph, int64_t max_samples,
                                                     bool trains, Backend* backend);

// A parameter or state of a layer, and where it lies.
struct FlatArray {
  std::string name;  // "LAYER.PARAMETER"
  int node = 0;
  ParameterSpec spec;
  int64_t begin = 0;  // in its flat buffer
  // The size of the matrix in the flat buffer, padding included; its rows have no gaps.
  int64_t padded_rows = 1, padded_cols = 1;
};
struct FlatLayout {
  std::vector<FlatArray> arrays;
  int64_t size = 0;  // values, padding and gaps included
};
// If `backend` is null, there is no padding.
FlatLayout LayoutParameters(const Graph& graph, const Backend* backend);
FlatLayout LayoutStates(const Graph& graph);

// A view of `array`, (rows, cols) with its padding, within its flat buffer, which is one row.
Tensor ViewOf(const FlatArray& array, const Tensor& buffer);

// Returns a tensor for each array of `layout`. If the array is a factor of products, or a bias that
// the backend takes rounded (ParameterSpec), and `dtype` has 16 bits, the tensor is memory of
// `dtype` for a copy, with the array's padding and with rows that begin at cache lines; otherwise
// it is empty.
absl::StatusOr<std::vector<Tensor>> AllocateCopies(const FlatLayout& layout, DType dtype,
                                                   Backend* backend);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_MEMORY_H_
