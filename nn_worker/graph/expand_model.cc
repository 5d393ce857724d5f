#include "nn_worker/graph/expand_model.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

absl::Status CheckName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("model: a layer has no name");
  if (name.find_first_of(".*/:") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("model: layer \"", name, "\": a name must not contain any of . * / :"));
  }
  if (name == kNumericInput) {
    return absl::InvalidArgumentError(
        absl::StrCat("model: layer \"", name, "\" has the name of a graph input"));
  }
  return absl::OkStatus();
}

// The layers of one mlp, each reading the one before.
class MlpExpansion {
 public:
  explicit MlpExpansion(const LayerConfig& layer) : name_(layer.name()) {
    if (layer.inputs_size() == 1) {
      last_ = layer.inputs(0);
    } else {
      LayerConfig* concat = Append("concat");
      concat->clear_inputs();
      *concat->mutable_inputs() = layer.inputs();
      concat->mutable_concat();
    }
    const MlpConfig& mlp = layer.mlp();
    for (int i = 0; i < mlp.units_size(); ++i) AppendBlock(mlp, i);
    if (mlp.output_units() != 0) {
      LinearConfig* output = Append("output")->mutable_linear();
      output->set_units(mlp.output_units());
      output->set_initializer(mlp.initializer());
    }
  }

  const std::vector<LayerConfig>& layers() const { return layers_; }

 private:
  LayerConfig* Append(const std::string& part) {
    LayerConfig layer;
    layer.set_name(absl::StrCat(name_, "/", part));
    layer.add_inputs(last_);
    last_ = layer.name();
    layers_.push_back(std::move(layer));
    return &layers_.back();
  }

  void AppendBlock(const MlpConfig& mlp, int i) {
    LinearConfig* linear = Append(absl::StrCat("linear_", i))->mutable_linear();
    linear->set_units(mlp.units(i));
    linear->set_initializer(mlp.initializer());
    if (!mlp.has_batch_norm()) {
      linear->set_activation(mlp.activation());
    } else {
      *Append(absl::StrCat("batch_norm_", i))->mutable_batch_norm() = mlp.batch_norm();
      if (mlp.activation() != ActivationConfig::LINEAR) {
        Append(absl::StrCat("activation_", i))->mutable_activation()->set_kind(mlp.activation());
      }
    }
    if (mlp.dropout() != 0) {
      Append(absl::StrCat("dropout_", i))->mutable_dropout()->set_rate(mlp.dropout());
    }
  }

  const std::string name_;
  std::string last_;
  std::vector<LayerConfig> layers_;
};

// The inputs of `layer` with "*.SEGMENT" expanded.
absl::Status ExpandInputs(const GraphInputs& inputs, LayerConfig* layer) {
  std::vector<std::string> names;
  for (const std::string& input : layer->inputs()) {
    if (!absl::StartsWith(input, "*.")) {
      names.push_back(input);
      continue;
    }
    const size_t before = names.size();
    for (const FeatureSegment& segment : inputs.segments) {
      if (segment.segment == absl::StripPrefix(input, "*.")) {
        names.push_back(absl::StrCat(segment.feature, ".", segment.segment));
      }
    }
    if (names.size() == before) {
      return absl::InvalidArgumentError(absl::StrCat("model: layer \"", layer->name(),
                                                     "\": input \"", input,
                                                     "\": no feature has that segment"));
    }
  }
  layer->clear_inputs();
  for (std::string& name : names) layer->add_inputs(std::move(name));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExpandedModel> ExpandModel(const ModelConfig& model, const GraphInputs& inputs) {
  if (model.layers().empty()) return absl::InvalidArgumentError("model: has no layers");
  ExpandedModel expanded;
  absl::flat_hash_set<std::string> names;
  absl::flat_hash_map<std::string, std::string> last_of;  // composite -> the layer it ends in
  for (LayerConfig layer : model.layers()) {
    RETURN_IF_ERROR(CheckName(layer.name()));
    if (!names.insert(layer.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: two layers are named \"", layer.name(), "\""));
    }
    RETURN_IF_ERROR(ExpandInputs(inputs, &layer));
    if (!layer.has_mlp()) {
      expanded.layers.push_back(std::move(layer));
      continue;
    }
    if (layer.mlp().units().empty() && layer.mlp().output_units() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: layer \"", layer.name(), "\" (mlp): no units"));
    }
    const MlpExpansion mlp(layer);
    last_of[layer.name()] = mlp.layers().back().name();
    expanded.layers.insert(expanded.layers.end(), mlp.layers().begin(), mlp.layers().end());
  }
  const auto resolve = [&last_of](const std::string& name) {
    const auto found = last_of.find(name);
    return found == last_of.end() ? name : found->second;
  };
  for (LayerConfig& layer : expanded.layers) {
    for (std::string& input : *layer.mutable_inputs()) input = resolve(input);
  }
  expanded.output = resolve(model.output());
  return expanded;
}

}  // namespace satrap
