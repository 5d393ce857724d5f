// The memory of a Network: which graph tensor and which parameter lies where.
//
//   activations  one block a tensor, rows padded to a multiple of 16 values; a tensor within a
//   concatenation is columns
//                of that block; graph inputs that lie in no concatenation share one block.
//                Gradients likewise.
//   parameters   one flat buffer each for values, gradients (and the caller's extra sums), each
//   optimizer slot, states

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_MEMORY_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/graph/graph.h"

namespace satrap {

// Values and gradients of the graph's tensors, (max_samples, size) each.
struct ActivationMemory {
  std::vector<Tensor> values;     // empty: an input that nobody reads
  std::vector<Tensor> gradients;  // empty: not needed
  // Whole blocks that hold gradients of segments: wider than the inputs, good to scan.
  std::vector<Tensor> input_gradient_blocks;
};
absl::StatusOr<ActivationMemory> AllocateActivations(const Graph& graph, int64_t max_samples,
                                                     Backend* backend);

// A parameter or state of a layer, and where it lies.
struct FlatArray {
  std::string name;  // "LAYER.PARAMETER"
  int node = 0;
  ParameterSpec spec;
  int64_t begin = 0;  // in its flat buffer
};
struct FlatLayout {
  std::vector<FlatArray> arrays;
  int64_t size = 0;  // values, gaps included
};
FlatLayout LayoutParameters(const Graph& graph);
FlatLayout LayoutStates(const Graph& graph);

// (rows, cols) of `array` within the flat buffer at `data`.
Tensor ViewOf(const FlatArray& array, float* data);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_MEMORY_H_
