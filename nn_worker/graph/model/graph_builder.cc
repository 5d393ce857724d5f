#include "nn_worker/graph/model/graph_builder.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/candidates.h"
#include "nn_worker/graph/model/concat_layout.h"
#include "nn_worker/graph/model/expand_model.h"
#include "nn_worker/graph/model/task_losses.h"
#include "nn_worker/layer/layer_factory.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

// The name of the layer's kind, which is the field that is set: "linear" if the layer has a linear
// {...}.
std::string KindName(const LayerConfig& config) {
  if (config.kind_case() == LayerConfig::KIND_NOT_SET) return "no kind";
  return config.GetDescriptor()->FindFieldByNumber(config.kind_case())->name();
}

class GraphBuilder {
 public:
  absl::StatusOr<Graph> Build(const ModelConfig& model, const GraphInputs& inputs, DType dtype,
                              GraphUse use) {
    ASSIGN_OR_RETURN(const ExpandedModel expanded, ExpandModel(model, inputs));
    RETURN_IF_ERROR(AddInputs(inputs));
    RETURN_IF_ERROR(AddNodes(expanded));
    // A layer's shapes follow from those of the layers it reads, so the layers are sorted first.
    RETURN_IF_ERROR(Sort());
    RETURN_IF_ERROR(InferShapes(inputs.max_samples));
    const std::vector<TaskOutput> tasks = TaskOutputsOf(model);
    for (size_t t = 0; t < tasks.size(); ++t) {
      RETURN_IF_ERROR(AddOutput(expanded.outputs[t]));
      if (use == GraphUse::kTraining)
        RETURN_IF_ERROR(CheckLoss(expanded.outputs[t], tasks[t].loss));
    }
    RETURN_IF_ERROR(CheckNodesAreRead());
    for (GraphTensor& tensor : graph_.tensors) {
      if (ShapeSize(tensor.shape) > 1) tensor.dtype = dtype;
    }
    // Losses read and write F32.
    if (use == GraphUse::kTraining) {
      for (const int output : graph_.outputs) graph_.tensors[output].dtype = DType::kF32;
    }
    LayInputsWithinConcats(&graph_);
    return std::move(graph_);
  }

 private:
  // The inputs have the order of Network::input_view. Only segments need a gradient: it goes back
  // to the embedding rows. Numeric columns and lengths are data.
  absl::Status AddInputs(const GraphInputs& inputs) {
    RETURN_IF_ERROR(AddTensor(kNumericInput, {inputs.numeric_width}, -1));
    for (const FeatureSegment& segment : inputs.segments) {
      SampleShape shape = {segment.dim};
      if (segment.max_length > 0) shape = {segment.max_length, segment.dim};
      RETURN_IF_ERROR(AddTensor(absl::StrCat(segment.feature, ".", segment.segment), shape, -1));
      graph_.tensors.back().needs_gradient = true;
    }
    for (const std::string& feature : inputs.sequences) {
      RETURN_IF_ERROR(AddTensor(absl::StrCat(feature, ".", kLengthInput), {1}, -1));
    }
    for (const FeatureSegment& segment : inputs.candidates) {
      RETURN_IF_ERROR(AddTensor(absl::StrCat(segment.feature, ".", segment.segment),
                                {inputs.max_candidates, segment.dim}, -1));
      graph_.tensors.back().needs_gradient = true;
      graph_.tensors.back().of_part = true;
    }
    graph_.num_inputs = static_cast<int>(graph_.tensors.size());
    return absl::OkStatus();
  }

  absl::Status AddTensor(const std::string& name, SampleShape shape, int producer) {
    GraphTensor tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    tensor.producer = producer;
    if (!by_name_.emplace(name, static_cast<int>(graph_.tensors.size())).second) {
      // A layer may have the name of a feature by chance. A layer that reads this name could then
      // mean either.
      return absl::InvalidArgumentError(absl::StrCat("model: two values are named \"", name, "\""));
    }
    graph_.tensors.push_back(std::move(tensor));
    return absl::OkStatus();
  }

  // Output 0 has the name of its layer; further outputs are named "LAYER:1", "LAYER:2", ... There
  // are two passes, because a layer may read a layer that is listed after it.
  absl::Status AddNodes(const ExpandedModel& expanded) {
    for (const LayerConfig& config : expanded.layers) {
      GraphNode node;
      node.name = config.name();
      node.config = config;
      absl::StatusOr<std::unique_ptr<Layer>> layer = NewLayer(config);
      if (!layer.ok()) return Error(node, layer.status().message());
      node.layer = std::move(*layer);
      for (int o = 0; o < node.layer->num_outputs(); ++o) {
        node.outputs.push_back(static_cast<int>(graph_.tensors.size()));
        RETURN_IF_ERROR(AddTensor(o == 0 ? node.name : absl::StrCat(node.name, ":", o), {},
                                  static_cast<int>(graph_.nodes.size())));
      }
      graph_.nodes.push_back(std::move(node));
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      GraphNode& node = graph_.nodes[i];
      for (const std::string& input : node.config.inputs()) {
        const auto found = by_name_.find(input);
        if (found == by_name_.end()) {
          return Error(node, absl::StrCat("reads \"", input,
                                          "\", which is neither a layer nor a graph input"));
        }
        node.inputs.push_back(found->second);
        graph_.tensors[found->second].consumers.push_back(static_cast<int>(i));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Sort() {
    std::vector<std::vector<int>> reads(graph_.nodes.size());
    for (size_t i = 0; i < reads.size(); ++i) {
      for (const int input : graph_.nodes[i].inputs) {
        if (graph_.tensors[input].producer >= 0) reads[i].push_back(graph_.tensors[input].producer);
      }
    }
    const std::vector<int> order = TopologicalOrder(reads);
    if (order.size() < reads.size()) return CycleError(reads, order);
    ReorderNodes(order, &graph_);
    return absl::OkStatus();
  }

  // Finds a cycle for the message. Every node that could not be ordered reads another such node, so
  // a walk along these reads must come back to a node that it has already visited. The nodes from
  // there on are a cycle.
  absl::Status CycleError(const std::vector<std::vector<int>>& reads,
                          const std::vector<int>& order) const {
    std::vector<bool> ordered(reads.size(), false);
    for (const int node : order) ordered[node] = true;
    int at = static_cast<int>(std::find(ordered.begin(), ordered.end(), false) - ordered.begin());
    std::vector<int> walk;
    while (std::find(walk.begin(), walk.end(), at) == walk.end()) {
      walk.push_back(at);
      at = *std::find_if(reads[at].begin(), reads[at].end(),
                         [&](int read) { return !ordered[read]; });
    }
    walk.erase(walk.begin(), std::find(walk.begin(), walk.end(), at));
    walk.push_back(at);
    std::reverse(walk.begin(), walk.end());
    return absl::InvalidArgumentError(
        absl::StrCat("model: layers read each other in a cycle: ",
                     absl::StrJoin(walk, " -> ", [this](std::string* out, int node) {
                       absl::StrAppend(out, graph_.nodes[node].name);
                     })));
  }

  // A tensor needs a gradient if anything that it is computed from is trained. Layers skip all
  // other gradients, such as that of the first product with respect to numeric columns.
  absl::Status InferShapes(int64_t max_samples) {
    for (GraphNode& node : graph_.nodes) {
      RETURN_IF_ERROR(CheckPartInputs(node));
      std::vector<SampleShape> shapes;
      bool needs_gradient = false;
      for (const int input : node.inputs) {
        shapes.push_back(graph_.tensors[input].shape);
        needs_gradient |= graph_.tensors[input].needs_gradient;
      }
      const absl::StatusOr<std::vector<SampleShape>> outputs = node.layer->Infer(shapes);
      if (!outputs.ok()) return Error(node, outputs.status().message());
      CHECK(outputs->size() == node.outputs.size());
      needs_gradient |= !node.layer->parameters().empty();
      needs_gradient &= !node.layer->stops_gradient();
      for (size_t o = 0; o < outputs->size(); ++o) {
        GraphTensor& tensor = graph_.tensors[node.outputs[o]];
        tensor.shape = (*outputs)[o];
        std::replace(tensor.shape.begin(), tensor.shape.end(), kSamplesOfPart, max_samples);
        tensor.needs_gradient = needs_gradient;
      }
    }
    return absl::OkStatus();
  }

  // Candidates have a different number of rows, which other layers would mistake for samples.
  absl::Status CheckPartInputs(const GraphNode& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool of_part = graph_.tensors[node.inputs[i]].of_part;
      if (node.layer->reads_part(static_cast<int>(i)) == of_part) continue;
      return Error(node, of_part
                             ? absl::StrCat("reads the candidates of the part as input ", i,
                                            ", but that input must have a value for each sample")
                             : absl::StrCat("reads a value of each sample as input ", i,
                                            ", but that input must be \"candidates.SEGMENT\""));
    }
    return absl::OkStatus();
  }

  // Layers may read an output, too. Its gradient is then the sum of their gradients and that of the
  // loss.
  absl::Status AddOutput(const std::string& output) {
    const auto found = by_name_.find(output);
    if (found == by_name_.end() || graph_.tensors[found->second].producer < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: output \"", output, "\" is not a layer"));
    }
    graph_.outputs.push_back(found->second);
    return absl::OkStatus();
  }

  // REQUIRES: the last call of AddOutput was for `output`
  absl::Status CheckLoss(const std::string& output, TaskConfig::Loss loss) const {
    const GraphTensor& tensor = graph_.tensors[graph_.outputs.back()];
    const SampleShape& shape = tensor.shape;
    if (IsCandidateLoss(loss)) {
      const LayerConfig& head = graph_.nodes[tensor.producer].config;
      const bool in_batch = loss == TaskConfig::IN_BATCH_SOFTMAX;
      if (in_batch ? !head.has_in_batch_logits() : !head.has_candidate_logits()) {
        return absl::InvalidArgumentError(
            absl::StrCat("model: output \"", output, "\" must be a layer ",
                         in_batch ? "in_batch_logits" : "candidate_logits", " for its loss"));
      }
    } else if (loss == TaskConfig::SOFTMAX_CROSS_ENTROPY) {
      if (shape.size() != 1 || shape[0] < 2) {
        return absl::InvalidArgumentError(
            absl::StrCat("model: output \"", output,
                         "\" must have the shape [classes] with at least 2 classes, but has ",
                         ShapeText(shape)));
      }
    } else if (shape != SampleShape{1}) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model: output \"", output, "\" must have the shape [1], but has ", ShapeText(shape)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckNodesAreRead() const {
    for (const GraphNode& node : graph_.nodes) {
      const bool read = std::any_of(node.outputs.begin(), node.outputs.end(), [this](int tensor) {
        return graph_.IsOutput(tensor) || !graph_.tensors[tensor].consumers.empty();
      });
      // A layer that nobody reads costs time and trains nothing. Most likely another layer is meant
      // to read it but misspells its name.
      if (!read) return Error(node, "is read by no layer and is not the output");
    }
    return absl::OkStatus();
  }

  // Names the inputs with their shapes, as far as these are inferred, because a wrong shape is
  // rarely the fault of the layer that detects it.
  absl::Status Error(const GraphNode& node, absl::string_view what) const {
    std::vector<std::string> inputs;
    for (const std::string& name : node.config.inputs()) {
      const auto found = by_name_.find(name);
      const bool known = found != by_name_.end() && !graph_.tensors[found->second].shape.empty();
      inputs.push_back(
          known ? absl::StrCat(name, " ", ShapeText(graph_.tensors[found->second].shape)) : name);
    }
    return absl::InvalidArgumentError(absl::StrCat("model: layer \"", node.name, "\" (",
                                                   KindName(node.config), " of ",
                                                   absl::StrJoin(inputs, ", "), "): ", what));
  }

  Graph graph_;
  absl::flat_hash_map<std::string, int> by_name_;
};

}  // namespace

absl::StatusOr<Graph> BuildGraph(const ModelConfig& model, const GraphInputs& inputs, DType dtype,
                                 GraphUse use) {
  return GraphBuilder().Build(model, inputs, dtype, use);
}

}  // namespace satrap
