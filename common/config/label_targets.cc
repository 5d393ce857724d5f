#include "common/config/label_targets.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace satrap {
namespace {

// A float holds whole numbers exactly up to here, and a label is a float.
constexpr float kMostClasses = 16777216;

// The layer called `name` among the first `before` layers. Layers only read earlier ones, so a
// search that follows inputs backwards ends.
int FindLayer(const ModelConfig& model, absl::string_view name, int before) {
  for (int i = before - 1; i >= 0; --i) {
    if (model.layers(i).name() == name) return i;
  }
  return -1;
}

// The widths of concatenations, by the layer's index: each is computed once, however often layers
// name one another.
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
      if (layer.inputs().empty()) return absl::nullopt;
      return WidthBefore(model, layer.inputs(0), at, sums);
    default:
      return absl::nullopt;
  }
}

// Narrows `targets` to values that the task's loss takes, too.
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
      const auto classes = OutputWidth(job.model(), task.output);
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

absl::optional<int64_t> OutputWidth(const ModelConfig& model, const std::string& name) {
  Sums sums;
  return WidthBefore(model, name, model.layers_size(), &sums);
}

}  // namespace satrap
