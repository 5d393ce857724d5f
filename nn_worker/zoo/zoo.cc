#include "nn_worker/zoo/zoo.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "google/protobuf/text_format.h"
#include "nn_worker/zoo/zoo_data.h"

namespace satrap {

namespace {

int64_t ExampleDim(const std::string& segment, const ExampleData& data) {
  if (segment == "linear") return 1;
  if (segment == "field_aware") return (data.features - 1) * data.dim;
  return data.dim;
}

// The names "FEATURE.SEGMENT" and "*.SEGMENT" that layers read, each once, in their order.
std::vector<std::pair<std::string, std::string>> SegmentsReadBy(const ModelConfig& model) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const LayerConfig& layer : model.layers()) {
    for (const std::string& input : layer.inputs()) {
      const std::pair<std::string, std::string> name =
          absl::StrSplit(input, absl::MaxSplits('.', 1));
      if (name.second.empty() || std::find(all.begin(), all.end(), name) != all.end()) continue;
      all.push_back(name);
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> ZooNames() {
  std::vector<std::string> names;
  for (const ZooFile& file : ZooFiles()) names.emplace_back(file.name);
  return names;
}

absl::StatusOr<ModelConfig> ZooModel(absl::string_view name) {
  for (const ZooFile& file : ZooFiles()) {
    if (name != file.name) continue;
    ModelConfig model;
    CHECK(google::protobuf::TextFormat::ParseFromString(file.text, &model)) << file.name;
    return model;
  }
  return absl::NotFoundError(absl::StrCat("model.zoo: no model \"", name, "\"; there are ",
                                          absl::StrJoin(ZooNames(), ", ")));
}

std::string ZooComment(absl::string_view name) {
  for (const ZooFile& file : ZooFiles()) {
    if (name != file.name) continue;
    std::string comment;
    for (absl::string_view line :
         absl::StrSplit(absl::StripLeadingAsciiWhitespace(file.text), '\n')) {
      if (!absl::ConsumePrefix(&line, "#")) break;
      absl::StrAppend(&comment, " ", line, "\n");
    }
    return comment;
  }
  CHECK(false) << "no model " << name;
  return "";
}

GraphInputs ExampleInputs(const ModelConfig& model, const ExampleData& data) {
  const auto segments = SegmentsReadBy(model);
  GraphInputs inputs;
  inputs.numeric_width = data.numerics;
  const auto add = [&](const std::string& feature, const std::string& segment) {
    inputs.segments.push_back({feature, segment, ExampleDim(segment, data), 0});
  };
  for (int64_t f = 1; f <= data.features; ++f) {
    for (const auto& [feature, segment] : segments) {
      if (feature == "*") add(absl::StrCat("f", f), segment);
    }
  }
  for (const auto& [feature, segment] : segments) {
    if (feature != "*") add(feature, segment);
  }
  return inputs;
}

}  // namespace satrap
