#include "nn_worker/graph/model/output_model.h"

#include <string>
#include <vector>

#include "common/base/check.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/graph/model/graph_builder.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTowers[] = R"(
  layers { name: "user_vector" inputs: [ "user.embedding", "numeric" ] mlp { units: 8 output_units: 3 } }
  layers { name: "parts" inputs: "item.embedding" slice { ranges { size: 1 } ranges { size: 3 } } }
  layers { name: "item_vector" inputs: "parts:1" scale { factor: 2 } }
  layers { name: "head" inputs: [ "user_vector", "item_vector", "candidates.embedding" ] candidate_logits {} }
  layers { name: "scaled" inputs: "head" scale {} }
  layers { name: "in_batch" inputs: [ "user_vector", "item_vector" ] in_batch_logits {} }
  layers { name: "bias" inputs: "candidates.linear" sum {} }
  layers { name: "logit" inputs: "user_vector" sum {} }
  tasks { name: "next" output: "scaled" loss: SAMPLED_SOFTMAX })";

GraphInputs Inputs() {
  GraphInputs inputs;
  inputs.numeric_width = 2;
  inputs.segments = {{"user", "embedding", 4, 0}, {"item", "embedding", 4, 0}};
  return inputs;
}

ModelConfig Towers() {
  ModelConfig model;
  CHECK(google::protobuf::TextFormat::ParseFromString(kTowers, &model));
  return model;
}

absl::StatusOr<Graph> Build(const std::vector<std::string>& outputs) {
  const auto model = ModelOfOutputs(Towers(), Inputs(), outputs);
  if (!model.ok()) return model.status();
  return BuildGraph(*model, Inputs(), DType::kF32, GraphUse::kOutputs);
}

std::vector<std::string> NodesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes) names.push_back(node.name);
  return names;
}

std::string ErrorOf(const std::string& output) {
  return std::string(Build({"user_vector", output}).status().message());
}

TEST(OutputModelTest, HasTheLayersThatOutputsNeedAndNoOthers) {
  const auto item = Build({"item_vector"});
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_THAT(NodesOf(*item), ElementsAre("parts", "item_vector"));
  const auto both = Build({"item_vector", "user_vector", "parts"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->nodes.size(), 5u) << "concat, two linear, slice, scale";
  ASSERT_EQ(both->outputs.size(), 3u);
  EXPECT_EQ(both->tensors[both->outputs[0]].name, "item_vector");
  EXPECT_EQ(both->tensors[both->outputs[0]].shape, (SampleShape{3}));
  EXPECT_EQ(both->tensors[both->outputs[1]].name, "user_vector/output");
  EXPECT_EQ(both->tensors[both->outputs[2]].name, "parts");
}

TEST(OutputModelTest, AnInputOfTheModelIsAnOutput) {
  const auto graph = Build({"item.embedding", "numeric", "parts:1"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->tensors[graph->outputs[0]].shape, (SampleShape{4}));
  EXPECT_EQ(graph->tensors[graph->outputs[1]].shape, (SampleShape{2}));
  EXPECT_EQ(graph->tensors[graph->outputs[2]].shape, (SampleShape{3}));
}

TEST(OutputModelTest, AnUnknownOutputIsAnsweredWithAList) {
  EXPECT_THAT(ErrorOf("item_vektor"),
              AllOf(HasSubstr("predict_outputs: the model has no layer \"item_vektor\"; it has "
                              "user_vector, parts, item_vector, head"),
                    HasSubstr("its inputs are numeric, user.embedding, item.embedding"),
                    HasSubstr("--output_file names the file to write")));
  EXPECT_THAT(ErrorOf("*.embedding"), HasSubstr("has no layer \"*.embedding\""));
}

TEST(OutputModelTest, WhatComparesWithCandidatesIsRefused) {
  EXPECT_THAT(ErrorOf("head"),
              HasSubstr("\"head\" compares with candidates, which exist only in training"));
  EXPECT_THAT(ErrorOf("in_batch"),
              HasSubstr("\"in_batch\" compares with candidates, which exist only in training"));
  EXPECT_THAT(ErrorOf("scaled"),
              HasSubstr("\"scaled\" is computed from layer \"head\", which compares"));
  EXPECT_THAT(ErrorOf("bias"), HasSubstr("\"bias\" compares with candidates"));
  EXPECT_THAT(ErrorOf("candidates.embedding"), HasSubstr("compares with candidates"));
}

}  // namespace
}  // namespace satrap
