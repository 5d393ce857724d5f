// Places the inputs of concatenations within their outputs, so that a concatenation costs nothing.
//
// A tensor lies within at most one concatenation, and occurs only once in it. Every other reader of
// the tensor must run before the concatenation. Then its Backward runs after that of the
// concatenation, and adds to the gradient that is already in place. If that would make a cycle, or
// if the tensor has another dtype, the tensor keeps its own memory and is copied. An output of the
// graph is copied, too, because the loss assigns its gradient before any Backward.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_CONCAT_LAYOUT_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_CONCAT_LAYOUT_H_

#include <vector>

#include "absl/types/span.h"
#include "nn_worker/graph/model/graph.h"

namespace satrap {

// Sets GraphTensor::within of the tensors of `graph` and puts the graph's nodes into an order that
// allows this. REQUIRES: the nodes are in topological order, shapes and dtypes are set
void LayInputsWithinConcats(Graph* graph);

// An order of the nodes 0 to reads.size() - 1 in which node i comes after all of reads[i]. If
// several nodes could be next, the one with the smallest number comes next. Nodes that lie on a
// cycle or depend on a cycle are missing from the result.
std::vector<int> TopologicalOrder(absl::Span<const std::vector<int>> reads);

// Puts the nodes into `order`, a permutation, and renumbers the references to them.
void ReorderNodes(absl::Span<const int> order, Graph* graph);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_CONCAT_LAYOUT_H_
