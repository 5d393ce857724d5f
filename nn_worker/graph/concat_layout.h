// Lets the inputs of concatenations lie within their outputs, so that a concatenation costs
// nothing.
//
// A tensor lies within at most one concatenation, once. For the gradients to come out right,
// whoever else reads it must run before the concatenation (its Backward then comes after, and adds
// to a gradient that is already there); where that would make a cycle, the tensor keeps memory of
// its own and is copied.

#ifndef SATRAP_NN_WORKER_GRAPH_CONCAT_LAYOUT_H_
#define SATRAP_NN_WORKER_GRAPH_CONCAT_LAYOUT_H_

#include <vector>

#include "absl/types/span.h"
#include "nn_worker/graph/graph.h"

namespace satrap {

// Sets `within` of the tensors of `graph` and puts its nodes into an order that allows it.
// REQUIRES: the nodes are in topological order, shapes are inferred
void LayInputsWithinConcats(Graph* graph);

// An order of [0, reads.size()) in which each comes after reads[i], the smallest number first where
// there is a choice. Shorter than reads.size() if there is a cycle: what is missing lies on one or
// after one.
std::vector<int> TopologicalOrder(absl::Span<const std::vector<int>> reads);

// Puts nodes into `order`, a permutation, and renumbers what names them.
void ReorderNodes(absl::Span<const int> order, Graph* graph);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_CONCAT_LAYOUT_H_
