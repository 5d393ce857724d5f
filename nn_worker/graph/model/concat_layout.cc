#include "nn_worker/graph/model/concat_layout.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "common/base/check.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

// For each node, the nodes whose outputs it reads.
std::vector<std::vector<int>> Reads(const Graph& graph) {
  std::vector<std::vector<int>> reads(graph.nodes.size());
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    for (const int input : graph.nodes[node].inputs) {
      if (graph.tensors[input].producer >= 0) reads[node].push_back(graph.tensors[input].producer);
    }
  }
  return reads;
}

// Whether there is a chain of reads from `late` back to `early`, so that `late` must come after
// `early`.
bool ComesAfter(const std::vector<std::vector<int>>& reads, int late, int early) {
  std::vector<bool> seen(reads.size(), false);
  std::vector<int> stack = {late};
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    if (node == early) return true;
    if (seen[node]) continue;
    seen[node] = true;
    stack.insert(stack.end(), reads[node].begin(), reads[node].end());
  }
  return false;
}

}  // namespace

std::vector<int> TopologicalOrder(absl::Span<const std::vector<int>> reads) {
  std::vector<int> waits(reads.size(), 0);
  std::vector<std::vector<int>> readers(reads.size());
  for (size_t node = 0; node < reads.size(); ++node) {
    for (const int read : reads[node]) {
      readers[read].push_back(static_cast<int>(node));
      ++waits[node];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (size_t node = 0; node < reads.size(); ++node) {
    if (waits[node] == 0) ready.push(static_cast<int>(node));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const int reader : readers[node]) {
      if (--waits[reader] == 0) ready.push(reader);
    }
  }
  return order;
}

void ReorderNodes(absl::Span<const int> order, Graph* graph) {
  CHECK(order.size() == graph->nodes.size());
  std::vector<int> place(order.size());
  std::vector<GraphNode> nodes;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<int>(i);
    nodes.push_back(std::move(graph->nodes[order[i]]));
  }
  graph->nodes = std::move(nodes);
  for (GraphTensor& tensor : graph->tensors) {
    if (tensor.producer >= 0) tensor.producer = place[tensor.producer];
    for (int& consumer : tensor.consumers) consumer = place[consumer];
    std::sort(tensor.consumers.begin(), tensor.consumers.end());
  }
}

void LayInputsWithinConcats(Graph* graph) {
  std::vector<std::vector<int>> reads = Reads(*graph);
  for (size_t node = 0; node < graph->nodes.size(); ++node) {
    const GraphNode& concat = graph->nodes[node];
    if (!concat.layer->inputs_within_output()) continue;
    int64_t column = 0;
    for (const int input : concat.inputs) {
      GraphTensor& tensor = graph->tensors[input];
      const int64_t begin = column;
      column += ShapeSize(tensor.shape);
      // An input that occurs twice would need two places.
      const bool once = std::count(concat.inputs.begin(), concat.inputs.end(), input) == 1;
      const bool same_dtype = tensor.dtype == graph->tensors[concat.outputs[0]].dtype;
      // An output keeps its own memory, because the loss assigns its gradient before the
      // concatenation's gradient is assigned.
      if (tensor.within >= 0 || !once || !same_dtype || graph->IsOutput(input)) continue;
      bool possible = true;
      for (const int other : tensor.consumers) {
        possible &=
            other == static_cast<int>(node) || !ComesAfter(reads, other, static_cast<int>(node));
      }
      if (!possible) continue;
      // The other readers of the tensor are treated as if the concatenation read them, so that
      // later choices and the order below keep the concatenation after them.
      for (const int other : tensor.consumers) {
        if (other != static_cast<int>(node)) reads[node].push_back(other);
      }
      tensor.within = concat.outputs[0];
      tensor.within_column = begin;
    }
  }
  const std::vector<int> order = TopologicalOrder(reads);
  ReorderNodes(order, graph);
}

}  // namespace satrap
