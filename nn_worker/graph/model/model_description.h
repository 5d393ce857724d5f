// Describes a model for people: its layers with shapes, parameters and operations, and its graph as
// a drawing.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_MODEL_DESCRIPTION_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_MODEL_DESCRIPTION_H_

#include <cstdint>
#include <string>

#include "nn_worker/graph/model/graph.h"

namespace satrap {

// The number of trainable values of the layers, without rows of tables.
int64_t DenseParameters(const Graph& graph);
// The number of multiplications and additions of the products in one sample's forward pass: the sum
// of Layer::ForwardFlops over all layers.
int64_t ForwardFlops(const Graph& graph);

// One line a layer, in the order of Forward: name, kind, shapes of the outputs, parameters,
// operations, and the tensors that the layer reads. Ends with a newline.
std::string LayerTable(const Graph& graph);

// The graph as an indented tree: the output first, and below each layer the layers and graph inputs
// that it reads. A layer that was already shown gets one line, marked "(above)", without the layers
// and inputs that it reads. Ends with a newline.
std::string DrawAsText(const Graph& graph);

// The graph in the DOT language of Graphviz, drawn so that data flow downwards.
std::string DrawAsDot(const Graph& graph);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_MODEL_DESCRIPTION_H_
