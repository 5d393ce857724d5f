#include "common/config/label_targets.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace satrap {
namespace {

// A label is a float, and a float can represent every whole number only up to 2^24.
constexpr float kMostClasses = 16777216;

// Whether a layer's output has the shape of its first input.
bool KeepsShape(const LayerConfig& layer) {
  switch (layer.kind_case()) {
    case LayerConfig::kBatchNorm:
    case LayerConfig::kDropout:
    case LayerConfig::kActivation:
    case LayerConfig::kAdd:
    case LayerConfig::kBias:
    case LayerConfig::kMultiply:
    case LayerConfig::kScale:
    case LayerConfig::kSoftmax:
    case LayerConfig::kLayerNorm:
    case LayerConfig::kL2Normalize:
    case LayerConfig::kStopGradient:
      return true;
    default:
      return false;
  }
}

// The index of the layer called `name` among the first `before` layers; -1 if it is not one of
// them. A search that follows inputs terminates, because it looks only for earlier layers.
int FindLayer(const ModelConfig& model, absl::string_view name, int before) {
  for (int i = before - 1; i >= 0; --i) {
    if (model.layers(i).name() == name) return i;
  }
  return -1;
}

// The widths of concatenations, by the layer's index. Each is computed only once, even if many
// layers read it.
using Sums = std::map<int, absl::optional<int64_t>>;

absl::optional<int64_t> WidthBefore(const ModelConfig& model, absl::string_view name, int before,
                                    Sums* sums);

absl::optional<int64_t> SumOfWidths(const ModelConfig& model, const LayerConfig& layer, int before,
                                    Sums* sums) {
  const auto known = sums->find(before);
  if (known != sums->end()) return known->second;
  absl::optional<int64_t> sum = 0;
  for (const std::string& input : layer.inputs()) {
    const absl::optional<int64_t> width = WidthBefore(model, input, before, sums);
    if (!width.has_value() || *sum + *width > static_cast<int64_t>(kMostClasses)) {
      sum.reset();
      break;
    }
    *sum += *width;
  }
  return (*sums)[before] = sum;
}

absl::optional<int64_t> WidthBefore(const ModelConfig& model, absl::string_view name, int before,
                                    Sums* sums) {
  const size_t colon = name.find(':');
  int output = 0;
  if (colon != absl::string_view::npos && !absl::SimpleAtoi(name.substr(colon + 1), &output)) {
    return absl::nullopt;
  }
  const int at = FindLayer(model, name.substr(0, colon), before);
  if (at < 0) return absl::nullopt;  // it is an input of the graph
  const LayerConfig& layer = model.layers(at);
  switch (layer.kind_case()) {
    case LayerConfig::kLinear:
      return layer.linear().units();
    case LayerConfig::kMlp:
      if (layer.mlp().output_units() > 0) return layer.mlp().output_units();
      if (layer.mlp().units().empty()) return absl::nullopt;
      return layer.mlp().units(layer.mlp().units_size() - 1);
    case LayerConfig::kSlice:
      if (output < 0 || output >= layer.slice().ranges_size()) return absl::nullopt;
      return layer.slice().ranges(output).size();
    case LayerConfig::kConcat:
      return SumOfWidths(model, layer, at, sums);
    default:
      if (layer.inputs().empty() || !KeepsShape(layer)) return absl::nullopt;
      return WidthBefore(model, layer.inputs(0), at, sums);
  }
}

// The shape of a graph's value for one sample: [d] or [k, d], as in nn_worker/layer/layer.h.
using Shape = std::vector<int64_t>;
using MaybeShape = absl::optional<Shape>;

MaybeShape Vector(int64_t values) {
  if (values < 1 || values > static_cast<int64_t>(kMostClasses)) return absl::nullopt;
  return Shape{values};
}
MaybeShape Matrix(int64_t count, int64_t dim) {
  if (count < 1 || dim < 1 || count > static_cast<int64_t>(kMostClasses) / dim) {
    return absl::nullopt;
  }
  return Shape{count, dim};
}

// The shapes of all inputs of the graph and outputs of its layers, except those that depend on the
// number of samples in a part.
class GraphShapes {
 public:
  explicit GraphShapes(const JobConfig& job) : job_(job) {
    shapes_["numeric"] = Shape{job.data().numerics_size()};
    for (const FeatureConfig& feature : job.data().features()) AddFeature(feature);
    // Repeats until nothing new is known, because a layer may read one that is listed after it.
    for (size_t known = 0; known < shapes_.size();) {
      known = shapes_.size();
      for (const LayerConfig& layer : job.model().layers()) AddLayer(layer);
    }
  }

  MaybeShape Of(absl::string_view name) const {
    auto at = shapes_.find(std::string(name));
    if (at == shapes_.end() && absl::EndsWith(name, ":0")) {
      at = shapes_.find(std::string(name.substr(0, name.size() - 2)));
    }
    return at == shapes_.end() ? absl::nullopt : at->second;
  }

 private:
  void AddFeature(const FeatureConfig& feature) {
    const bool is_sequence = feature.pooling() == FeatureConfig::NONE;
    if (is_sequence) shapes_[feature.name() + ".length"] = Vector(1);
    for (const TableConfig& table : job_.tables()) {
      if (table.name() != feature.table()) continue;
      for (const SegmentConfig& segment : table.segments()) {
        shapes_[absl::StrCat(feature.name(), ".", segment.name())] =
            is_sequence ? Matrix(feature.max_length(), segment.dim()) : Vector(segment.dim());
      }
    }
  }

  // The shapes of a layer's inputs; empty if one of the shapes is not known.
  std::vector<Shape> InputsOf(const LayerConfig& layer) const {
    std::vector<Shape> inputs;
    for (const std::string& input : layer.inputs()) {
      if (!absl::StartsWith(input, "*.")) {
        const MaybeShape shape = Of(input);
        if (!shape.has_value()) return {};
        inputs.push_back(*shape);
        continue;
      }
      for (const FeatureConfig& feature : job_.data().features()) {
        const auto at = shapes_.find(feature.name() + input.substr(1));
        if (at == shapes_.end()) continue;  // the feature has no such segment
        if (!at->second.has_value()) return {};
        inputs.push_back(*at->second);
      }
    }
    return inputs;
  }

  void AddLayer(const LayerConfig& layer) {
    const std::vector<Shape> inputs = InputsOf(layer);
    // The output shape of these layers does not depend on their input.
    if (layer.has_linear() || layer.has_mlp()) {
      shapes_[layer.name()] = OutputOf(layer, {Shape{1}});
      return;
    }
    if (inputs.empty()) return;
    if (!layer.has_slice()) {
      shapes_[layer.name()] = OutputOf(layer, inputs);
      return;
    }
    for (int i = 0; i < layer.slice().ranges_size(); ++i) {
      const int64_t size = layer.slice().ranges(i).size();
      shapes_[i == 0 ? layer.name() : absl::StrCat(layer.name(), ":", i)] =
          inputs[0].size() == 1 ? Vector(size) : Matrix(size, inputs[0][1]);
    }
  }

  // REQUIRES: inputs are not empty
  static MaybeShape OutputOf(const LayerConfig& layer, const std::vector<Shape>& inputs) {
    int64_t fields = 0;
    for (const Shape& input : inputs) fields += input.size() == 2 ? input[0] : 1;
    const int64_t dim = inputs[0].back();
    if (KeepsShape(layer)) return inputs[0];
    switch (layer.kind_case()) {
      case LayerConfig::kLinear:
        return Vector(layer.linear().units());
      case LayerConfig::kMlp:
        if (layer.mlp().output_units() > 0) return Vector(layer.mlp().output_units());
        return layer.mlp().units().empty() ? absl::nullopt : Vector(*layer.mlp().units().rbegin());
      case LayerConfig::kConcat:
      case LayerConfig::kCross:  // it joins its inputs first
      case LayerConfig::kCrossV2:
        return Joined(inputs);
      case LayerConfig::kSum:
      case LayerConfig::kFm:
      case LayerConfig::kTally:
      case LayerConfig::kFieldAwareInteraction:
      case LayerConfig::kFwfm:
        return Vector(1);
      case LayerConfig::kSequencePool:
      case LayerConfig::kBiInteraction:
        return Vector(dim);
      case LayerConfig::kStack:
        return Matrix(fields, dim);
      case LayerConfig::kFlatten:
        return Vector(inputs[0].size() == 2 ? inputs[0][0] * dim : dim);
      case LayerConfig::kDotInteraction:
        return Vector(dim + fields * (fields - 1) / 2);
      case LayerConfig::kInnerProduct:
        return Vector(fields * (fields - 1) / 2);
      case LayerConfig::kCin: {
        int64_t sum = 0;
        for (const int32_t units : layer.cin().units()) sum += units;
        return Vector(sum);
      }
      case LayerConfig::kAttention:
        return Matrix(inputs[0][0], layer.attention().units());
      case LayerConfig::kNumericEmbedding:
        return Matrix(inputs[0][0], layer.numeric_embedding().dim());
      default:
        return absl::nullopt;
    }
  }

  static MaybeShape Joined(const std::vector<Shape>& inputs) {
    int64_t sum = 0;
    for (const Shape& input : inputs) {
      if (input.size() != 1) return absl::nullopt;
      sum = std::min(sum + input[0], static_cast<int64_t>(kMostClasses) + 1);
    }
    return Vector(sum);
  }

  const JobConfig& job_;
  std::map<std::string, MaybeShape> shapes_;
};

// Narrows `targets` further, to the values that the task's loss takes.
void Narrow(const JobConfig& job, const ModelTask& task, LabelTargets* targets) {
  switch (task.loss) {
    case TaskConfig::BCE:
      targets->loss = task.loss;
      targets->least = std::max(targets->least, 0.0f);
      targets->largest = std::min(targets->largest, 1.0f);
      targets->learns_from = LearnsFrom::kDifferences;
      return;
    case TaskConfig::MSE:
      if (std::isinf(targets->least)) targets->loss = task.loss;
      targets->least = std::max(targets->least, -kLargestNumber);
      targets->largest = std::min(targets->largest, kLargestNumber);
      targets->learns_from = LearnsFrom::kDifferences;
      return;
    case TaskConfig::BPR:
      if (targets->learns_from == LearnsFrom::kNoLabel) {
        targets->loss = task.loss;
        targets->learns_from = LearnsFrom::kSidesOfAHalf;
      }
      return;
    case TaskConfig::SOFTMAX_CROSS_ENTROPY: {
      targets->loss = task.loss;
      const auto classes = ClassesOf(job, task.output);
      targets->least = std::max(targets->least, 0.0f);
      targets->largest =
          std::min(targets->largest,
                   classes.has_value() ? static_cast<float>(*classes - 1) : kMostClasses - 1);
      targets->whole = true;
      targets->learns_from = LearnsFrom::kDifferences;
      return;
    }
    case TaskConfig::SAMPLED_SOFTMAX:
    case TaskConfig::NCE:
    case TaskConfig::IN_BATCH_SOFTMAX:
      return;
  }
}

}  // namespace

std::string LabelTargets::Text() const {
  const std::string& name = TaskConfig::Loss_Name(loss);
  if (whole) {
    return absl::StrCat("a whole number from 0 to ", static_cast<int64_t>(largest),
                        ", the classes of ", name);
  }
  if (least == 0) return absl::StrCat("a number in [0, 1], which ", name, " takes");
  return absl::StrCat("a number of at most 1e15 in magnitude, which ", name, " takes");
}

std::vector<LabelTargets> LabelTargetsOf(const JobConfig& job) {
  std::vector<LabelTargets> all;
  for (const std::string& column : LabelsOf(job.data())) {
    all.emplace_back();
    all.back().column = column;
  }
  for (const ModelTask& task : TasksOf(job)) Narrow(job, task, &all[task.label]);
  return all;
}

// If a run reads files, record_rules decides whether the shapes of all layers are examined, because
// the run's ledger counts good records, and the number of classes decides which records are good.
// If a run reads topics, all layers are examined, because the ledger of a topic counts offsets,
// whether or not they hold good records.
absl::optional<int64_t> ClassesOf(const JobConfig& job, const std::string& output) {
  const bool looks_at_all = job.data().record_rules() >= 2 || job.data().has_kafka();
  if (!looks_at_all) return OutputWidth(job.model(), output);
  const MaybeShape shape = GraphShapes(job).Of(output);
  // Older builds used only OutputWidth. A run from topics that began with one of them must still
  // know the classes that it knew then.
  if (!shape.has_value()) return OutputWidth(job.model(), output);
  return shape->size() == 1 ? absl::optional<int64_t>(shape->front()) : absl::nullopt;
}

absl::optional<int64_t> OutputWidth(const ModelConfig& model, const std::string& name) {
  Sums sums;
  return WidthBefore(model, name, model.layers_size(), &sums);
}

}  // namespace satrap
