// A Graph is a ModelConfig made plain: composites and "*.segment" expanded, names resolved, shapes
// inferred and checked, layers in an order in which each comes after what it reads. Nothing of it
// has run yet; what is wrong with a model is found when it is built (graph_builder.h).
//
// Immutable once built, but for the layers it owns, which the network binds and runs.

#ifndef SATRAP_NN_WORKER_GRAPH_GRAPH_H_
#define SATRAP_NN_WORKER_GRAPH_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// A value that flows: a graph input or an output of a layer.
struct GraphTensor {
  std::string name;
  SampleShape shape;
  int producer = -1;           // node; -1: a graph input
  std::vector<int> consumers;  // nodes, once for each time it is read
  bool needs_gradient = false;
  // The tensor of a concatenation that this one lies within, and its first column there; -1: in
  // memory of its own.
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
  std::vector<GraphNode> nodes;  // in the order of Forward
  // [0]: "numeric"; then GraphInputs.segments, then the lengths of its sequences; then outputs of
  // layers.
  std::vector<GraphTensor> tensors;
  int num_inputs = 0;
  int output = -1;  // tensor of the logits
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_GRAPH_H_
