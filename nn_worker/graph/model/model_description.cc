#include "nn_worker/graph/model/model_description.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

int64_t ParametersOf(const GraphNode& node) {
  int64_t values = 0;
  for (const ParameterSpec& spec : node.layer->parameters()) values += spec.rows * spec.cols;
  return values;
}

std::string KindOf(const GraphNode& node) {
  return node.config.GetDescriptor()->FindFieldByNumber(node.config.kind_case())->name();
}

std::string OutputsOf(const Graph& graph, const GraphNode& node) {
  return absl::StrJoin(node.outputs, " ", [&](std::string* out, int t) {
    absl::StrAppend(out, ShapeText(graph.tensors[t].shape));
  });
}

// A tensor that layers read, or several similar graph inputs: "f1.linear ... f26.linear".
struct Source {
  std::string text;
  int producer = -1;  // node; -1: graph inputs
  int first = 0;      // tensor
};

// For "f1.embedding" returns ".embedding"; empty if `name` does not name a segment.
std::string SegmentOf(const std::string& name) {
  const size_t dot = name.find('.');
  return dot == std::string::npos ? "" : name.substr(dot);
}

// Joins similar graph inputs: a model has dozens of features, and a line for each would hide the
// layers.
std::vector<Source> SourcesOf(const Graph& graph, const GraphNode& node) {
  std::vector<Source> sources;
  for (size_t i = 0; i < node.inputs.size();) {
    const GraphTensor& first = graph.tensors[node.inputs[i]];
    const std::string segment = SegmentOf(first.name);
    size_t end = i + 1;
    while (end < node.inputs.size() && !segment.empty() && first.producer < 0 &&
           graph.tensors[node.inputs[end]].producer < 0 &&
           graph.tensors[node.inputs[end]].shape == first.shape &&
           SegmentOf(graph.tensors[node.inputs[end]].name) == segment) {
      ++end;
    }
    Source source{first.name, first.producer, node.inputs[i]};
    if (end - i == 2) {
      absl::StrAppend(&source.text, ", ", graph.tensors[node.inputs[i + 1]].name);
    } else if (end - i > 2) {
      absl::StrAppend(&source.text, " ... ", graph.tensors[node.inputs[end - 1]].name, " (",
                      end - i, ")");
    }
    sources.push_back(std::move(source));
    i = end;
  }
  return sources;
}

// Lays out rows of cells in columns: text aligned to the left, numbers to the right.
std::string Aligned(const std::vector<std::vector<std::string>>& rows,
                    const std::vector<bool>& number) {
  std::vector<size_t> widths(number.size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - row[c].size(), ' ');
      const bool last = c + 1 == row.size();
      absl::StrAppend(&line, c == 0 ? "" : "  ", number[c] ? pad : "", row[c],
                      number[c] || last ? "" : pad);
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

void DrawNode(const Graph& graph, int index, int depth, absl::flat_hash_set<int>* shown,
              std::string* text) {
  const GraphNode& node = graph.nodes[index];
  const bool again = !shown->insert(index).second;
  absl::StrAppend(text, std::string(2 * depth, ' '), node.name, " ", OutputsOf(graph, node), " ",
                  KindOf(node), again ? " (above)" : "", "\n");
  if (again) return;
  for (const Source& source : SourcesOf(graph, node)) {
    if (source.producer >= 0) {
      DrawNode(graph, source.producer, depth + 1, shown, text);
    } else {
      absl::StrAppend(text, std::string(2 * depth + 2, ' '), source.text, " ",
                      ShapeText(graph.tensors[source.first].shape), "\n");
    }
  }
}

}  // namespace

int64_t DenseParameters(const Graph& graph) {
  int64_t values = 0;
  for (const GraphNode& node : graph.nodes) values += ParametersOf(node);
  return values;
}

int64_t ForwardFlops(const Graph& graph) {
  int64_t flops = 0;
  for (const GraphNode& node : graph.nodes) flops += node.layer->ForwardFlops();
  return flops;
}

std::string LayerTable(const Graph& graph) {
  std::vector<std::vector<std::string>> rows = {
      {"layer", "kind", "output", "parameters", "FLOPs", "reads"}};
  for (const GraphNode& node : graph.nodes) {
    const std::string reads = absl::StrJoin(
        SourcesOf(graph, node), ", ",
        [](std::string* out, const Source& source) { absl::StrAppend(out, source.text); });
    rows.push_back({node.name, KindOf(node), OutputsOf(graph, node),
                    absl::StrCat(ParametersOf(node)), absl::StrCat(node.layer->ForwardFlops()),
                    reads});
  }
  return Aligned(rows, {false, false, false, true, true, false});
}

std::string DrawAsText(const Graph& graph) {
  std::string text;
  absl::flat_hash_set<int> shown;
  absl::flat_hash_set<int> drawn;  // tasks may share an output
  for (const int output : graph.outputs) {
    if (drawn.insert(output).second) {
      DrawNode(graph, graph.tensors[output].producer, 0, &shown, &text);
    }
  }
  return text;
}

std::string DrawAsDot(const Graph& graph) {
  std::string dot = "digraph model {\n  node [shape=box];\n";
  absl::flat_hash_set<std::string> inputs;
  for (const GraphNode& node : graph.nodes) {
    absl::StrAppendFormat(&dot, "  \"%s\" [label=\"%s\\n%s %s\"];\n", node.name, node.name,
                          KindOf(node), OutputsOf(graph, node));
    for (const Source& source : SourcesOf(graph, node)) {
      const std::string from =
          source.producer >= 0 ? graph.nodes[source.producer].name : source.text;
      if (source.producer < 0 && inputs.insert(from).second) {
        absl::StrAppendFormat(&dot, "  \"%s\" [shape=ellipse];\n", from);
      }
      absl::StrAppendFormat(&dot, "  \"%s\" -> \"%s\" [label=\"%s\"];\n", from, node.name,
                            ShapeText(graph.tensors[source.first].shape));
    }
  }
  return dot + "}\n";
}

}  // namespace satrap
