// A Graph is a ModelConfig in plain form: composites and "*.SEGMENT" are expanded, names are
// resolved, shapes are inferred and checked, and each layer comes after the layers that it reads.
// Errors of a model are found while it is built (graph_builder.h), before anything runs.
//
// Immutable once built, except for the layers it owns, which the network binds and runs.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_GRAPH_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_GRAPH_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// A graph input or an output of a layer.
struct GraphTensor {
  std::string name;
  SampleShape shape;
  int producer = -1;           // node; -1: a graph input
  std::vector<int> consumers;  // nodes, once for each time it is read
  bool needs_gradient = false;
  // Whether this is a graph input that belongs to the part, such as candidates: its tensor is (rows
  // of the part, dim), and `shape` is [most rows, dim].
  bool of_part = false;
  // The type of the tensor's values and of their gradients. A tensor with one value per sample
  // (logits, terms of logits, lengths of sequences) is always F32.
  DType dtype = DType::kF32;
  // A tensor may lie within the output of a concatenation. `within` is then that output, and
  // `within_column` is the first column of this tensor in it. `within` is -1 if this tensor has its
  // own memory.
  int within = -1;
  int64_t within_column = 0;
};

struct GraphNode {
  std::string name;
  LayerConfig config;
  std::unique_ptr<Layer> layer;
  std::vector<int> inputs;   // tensors
  std::vector<int> outputs;  // tensors
};

struct Graph {
  bool IsOutput(int tensor) const {
    return std::find(outputs.begin(), outputs.end(), tensor) != outputs.end();
  }

  std::vector<GraphNode> nodes;  // in the order of Forward
  // First "numeric", then GraphInputs.segments, then the lengths of its sequences, then the
  // candidates, and last the outputs of layers.
  std::vector<GraphTensor> tensors;
  int num_inputs = 0;
  std::vector<int> outputs;  // tensors, by task
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_GRAPH_H_
