// Describes a model for people: its layers with shapes, parameters and operations, and its graph as
// a drawing.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_MODEL_DESCRIPTION_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_MODEL_DESCRIPTION_H_

#include <cstdint>
#include <string>

#include "nn_worker/graph/model/graph.h"

namespace satrap {

// Trainable values of the layers; rows of tables are not among them.
int64_t DenseParameters(const Graph& graph);
// The number of multiplications and additions in the matrix products of one sample's forward pass.
int64_t ForwardFlops(const Graph& graph);

// One line a layer, in the order of Forward: name, kind, shapes of the outputs, parameters,
// operations, and the tensors that the layer reads. Ends with a newline.
std::string LayerTable(const Graph& graph);

// The graph as an indented tree: the output first, and below each layer the layers that it reads. A
// layer that was shown before appears by name only. Ends with a newline.
std::string DrawAsText(const Graph& graph);

// The graph in the DOT language of Graphviz, data flowing down.
std::string DrawAsDot(const Graph& graph);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_MODEL_DESCRIPTION_H_
