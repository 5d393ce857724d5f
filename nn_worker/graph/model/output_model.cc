#include "nn_worker/graph/model/output_model.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

constexpr absl::string_view kCandidateRows = "candidates.";

// The name of the layer in the name of an output: LAYER for "LAYER:1".
std::string LayerOf(absl::string_view name) { return std::string(name.substr(0, name.find(':'))); }

std::vector<std::string> InputNames(const GraphInputs& inputs) {
  std::vector<std::string> names;
  if (inputs.numeric_width > 0) names.emplace_back(kNumericInput);
  for (const FeatureSegment& segment : inputs.segments) {
    names.push_back(absl::StrCat(segment.feature, ".", segment.segment));
  }
  for (const std::string& feature : inputs.sequences) {
    names.push_back(absl::StrCat(feature, ".", kLengthInput));
  }
  return names;
}

class OutputModel {
 public:
  OutputModel(const ModelConfig& model, const GraphInputs& inputs)
      : model_(model), input_names_(InputNames(inputs)) {
    inputs_.insert(input_names_.begin(), input_names_.end());
    for (const LayerConfig& layer : model.layers()) layers_[layer.name()] = &layer;
  }

  absl::StatusOr<ModelConfig> Make(const std::vector<std::string>& outputs) {
    ModelConfig made;
    for (const std::string& output : outputs) {
      TaskConfig* const task = made.add_tasks();
      task->set_output(output);
      if (absl::StartsWith(output, kCandidateRows)) return NeedsCandidates(output, "");
      if (inputs_.contains(output)) {
        // A graph allocates an input only if a layer reads it. So this adds a layer that reads the
        // input.
        task->set_output(absl::StrCat("output_", made.tasks_size() - 1));
        while (layers_.contains(task->output())) task->set_output(task->output() + "_");
        LayerConfig* const copy = made.add_layers();
        copy->set_name(task->output());
        copy->add_inputs(output);
        copy->mutable_scale();
        continue;
      }
      if (!layers_.contains(LayerOf(output))) return Unknown(output);
      RETURN_IF_ERROR(Reach(output));
    }
    for (const LayerConfig& layer : model_.layers()) {
      if (reached_.contains(layer.name())) *made.add_layers() = layer;
    }
    return made;
  }

 private:
  // Adds the layers that `output` needs. The graph builder reports a name that is neither a layer
  // nor an input.
  absl::Status Reach(const std::string& output) {
    std::vector<std::string> stack = {LayerOf(output)};
    while (!stack.empty()) {
      const std::string name = std::move(stack.back());
      stack.pop_back();
      const auto found = layers_.find(name);
      if (found == layers_.end() || !reached_.insert(name).second) continue;
      const LayerConfig& layer = *found->second;
      if (layer.has_candidate_logits() || layer.has_in_batch_logits()) {
        return NeedsCandidates(output, name);
      }
      for (const std::string& input : layer.inputs()) {
        if (absl::StartsWith(input, kCandidateRows)) return NeedsCandidates(output, name);
        stack.push_back(LayerOf(input));
      }
    }
    return absl::OkStatus();
  }

  static absl::Status NeedsCandidates(const std::string& output, const std::string& layer) {
    const std::string through =
        layer.empty() || layer == output
            ? ""
            : absl::StrCat(" is computed from layer \"", layer, "\", which");
    return absl::InvalidArgumentError(
        absl::StrCat("predict_outputs: \"", output, "\"", through,
                     " compares with candidates, which exist only in training; "
                     "instead, name the vectors that it compares"));
  }

  absl::Status Unknown(const std::string& output) const {
    std::vector<std::string> names;
    for (const LayerConfig& layer : model_.layers()) names.push_back(layer.name());
    return absl::InvalidArgumentError(
        absl::StrCat("predict_outputs: the model has no layer \"", output, "\"; it has ",
                     absl::StrJoin(names, ", "), "; its inputs are ",
                     input_names_.empty() ? "none" : absl::StrJoin(input_names_, ", "),
                     " (--output_file names the file to write)"));
  }

  const ModelConfig& model_;
  const std::vector<std::string> input_names_;
  absl::flat_hash_set<std::string> inputs_;
  absl::flat_hash_map<std::string, const LayerConfig*> layers_;
  absl::flat_hash_set<std::string> reached_;
};

}  // namespace

absl::StatusOr<ModelConfig> ModelOfOutputs(const ModelConfig& model, const GraphInputs& inputs,
                                           const std::vector<std::string>& outputs) {
  CHECK(!outputs.empty());
  return OutputModel(model, inputs).Make(outputs);
}

}  // namespace satrap
