#include "nn_worker/graph/model/expand_model.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/config/setting_ranges.h"
#include "nn_worker/graph/model/task_losses.h"

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

// Whether the layer expands to several layers.
bool IsComposite(const LayerConfig& layer) {
  return layer.has_mlp() || layer.has_cross() || layer.has_cross_v2() || layer.has_attention();
}

// The layers of one composite. Each reads the previous one.
class Expansion {
 public:
  // REQUIRES: CheckComposite has found no mistake
  explicit Expansion(const LayerConfig& layer) : name_(layer.name()) {
    if (layer.inputs_size() == 1) {
      last_ = layer.inputs(0);
    } else {
      LayerConfig* concat = Append("concat");
      concat->clear_inputs();
      *concat->mutable_inputs() = layer.inputs();
      concat->mutable_concat();
    }
    if (layer.has_mlp()) AppendMlp(layer.mlp());
    if (layer.has_cross()) AppendCross(layer.cross().layers(), layer);
    if (layer.has_cross_v2()) AppendCross(layer.cross_v2().layers(), layer);
    if (layer.has_attention()) AppendAttention(layer.attention());
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

  void AppendMlp(const MlpConfig& mlp) {
    for (int i = 0; i < mlp.units_size(); ++i) AppendBlock(mlp, i);
    if (mlp.output_units() != 0) {
      LinearConfig* output = Append("output")->mutable_linear();
      output->set_units(mlp.output_units());
      output->set_initializer(mlp.initializer());
    }
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

  // Each layer of a cross or a cross_v2 reads x_0 and the previous layer; the first layer reads x_0
  // twice.
  void AppendCross(int count, const LayerConfig& layer) {
    const std::string first = last_;
    for (int i = 0; i < count; ++i) {
      LayerConfig* cross = Append(absl::StrCat("cross_", i));
      const std::string before = cross->inputs(0);
      cross->set_inputs(0, first);
      cross->add_inputs(before);
      if (layer.has_cross()) {
        cross->mutable_cross()->set_layers(1);
      } else {
        *cross->mutable_cross_v2() = layer.cross_v2();
        cross->mutable_cross_v2()->set_layers(1);
      }
    }
  }

  void AppendAttention(const AttentionConfig& attention) {
    for (int i = 0; i < attention.layers(); ++i) {
      AttentionConfig* one = Append(absl::StrCat("attention_", i))->mutable_attention();
      *one = attention;
      one->set_layers(1);
      one->set_layer_norm(false);
      if (attention.layer_norm()) Append(absl::StrCat("layer_norm_", i))->mutable_layer_norm();
      Append(absl::StrCat("activation_", i))->mutable_activation();
    }
  }

  const std::string name_;
  std::string last_;
  std::vector<LayerConfig> layers_;
};

absl::Status CheckComposite(const LayerConfig& layer) {
  const absl::Status ranges = RangeStatus(layer);
  std::string wrong(ranges.message());
  if (layer.has_mlp() && layer.mlp().units().empty() && layer.mlp().output_units() == 0) {
    wrong = "mlp: no units";
  }
  // Several inputs would be joined into one long vector, but attention needs the vectors of a
  // single input.
  if (layer.has_attention() && layer.inputs_size() != 1) {
    wrong = absl::StrCat("attention: takes one input, such as the output of a stack, got ",
                         layer.inputs_size());
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model: layer \"", layer.name(), "\": ", wrong));
}

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
                                                     "\": no feature has a segment of this name"));
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
    if (!IsComposite(layer)) {
      expanded.layers.push_back(std::move(layer));
      continue;
    }
    RETURN_IF_ERROR(CheckComposite(layer));
    const Expansion expansion(layer);
    last_of[layer.name()] = expansion.layers().back().name();
    expanded.layers.insert(expanded.layers.end(), expansion.layers().begin(),
                           expansion.layers().end());
  }
  const auto resolve = [&](const std::string& name) {
    // "LAYER:0" is another name for the layer itself. But the name of a graph input may also end in
    // ":0".
    const std::string stripped(absl::StripSuffix(name, ":0"));
    const std::string& layer = names.contains(stripped) ? stripped : name;
    const auto found = last_of.find(layer);
    return found == last_of.end() ? layer : found->second;
  };
  for (LayerConfig& layer : expanded.layers) {
    for (std::string& input : *layer.mutable_inputs()) input = resolve(input);
  }
  for (const TaskOutput& task : TaskOutputsOf(model)) {
    expanded.outputs.push_back(resolve(task.output));
  }
  return expanded;
}

}  // namespace satrap
