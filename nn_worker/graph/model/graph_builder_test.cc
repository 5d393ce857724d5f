#include "nn_worker/graph/model/graph_builder.h"

#include <string>

#include "common/base/check.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

GraphInputs TwoFeatures() {
  GraphInputs inputs;
  inputs.numeric_width = 3;
  inputs.segments = {{"user", "embedding", 4, 0},
                     {"user", "linear", 1, 0},
                     {"item", "embedding", 4, 0},
                     {"item", "linear", 1, 0},
                     {"history", "long", 2, 50}};
  inputs.sequences = {"history"};
  return inputs;
}

absl::StatusOr<Graph> Build(const std::string& layers) {
  ModelConfig model;
  CHECK(google::protobuf::TextFormat::ParseFromString(layers, &model)) << layers;
  return BuildGraph(model, TwoFeatures());
}

std::string ErrorOf(const std::string& layers) {
  return std::string(Build(layers).status().message());
}

std::string Order(const Graph& graph) {
  std::string order;
  for (const GraphNode& node : graph.nodes) order += (order.empty() ? "" : " ") + node.name;
  return order;
}

const GraphTensor& Named(const Graph& graph, const std::string& name) {
  for (const GraphTensor& tensor : graph.tensors) {
    if (tensor.name == name) return tensor;
  }
  CHECK(false) << name;
  return graph.tensors[0];
}

constexpr char kDeepFm[] = R"(
  layers { name: "deep" inputs: "*.embedding" inputs: "numeric" mlp { units: 8 units: 6 output_units: 1 } }
  layers { name: "fm" inputs: "*.embedding" fm {} }
  layers { name: "linear" inputs: "*.linear" sum {} }
  layers { name: "logit" inputs: "deep" inputs: "fm" inputs: "linear" add {} }
)";

TEST(GraphBuilderTest, ExpandsStarsAndMlps) {
  const auto graph = Build(kDeepFm);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "deep/concat").shape, (SampleShape{11}));
  EXPECT_EQ(Named(*graph, "deep/linear_1").shape, (SampleShape{6}));
  EXPECT_EQ(Named(*graph, "deep/output").shape, (SampleShape{1}));
  EXPECT_EQ(graph->tensors[graph->outputs[0]].name, "logit");
  EXPECT_EQ(Named(*graph, "user.embedding").consumers.size(), 2u);
}

TEST(GraphBuilderTest, MlpHasItsPartsInOrder) {
  const auto graph = Build(R"(
    layers { name: "logit" inputs: "numeric"
             mlp { units: 8 batch_norm {} activation: TANH dropout: 0.5 output_units: 1 } })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Order(*graph),
            "logit/linear_0 logit/batch_norm_0 logit/activation_0 logit/dropout_0 logit/output");
}

TEST(GraphBuilderTest, InputsLieWithinTheConcatAndTheOtherReadersComeFirst) {
  const auto graph = Build(kDeepFm);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->tensors[Named(*graph, "item.embedding").within].name, "deep/concat");
  EXPECT_EQ(Named(*graph, "item.embedding").within_column, 4);
  EXPECT_EQ(Named(*graph, "numeric").within_column, 8);
  EXPECT_EQ(Named(*graph, "item.linear").within, -1);
  const std::string order = Order(*graph);
  EXPECT_LT(order.find("fm"), order.find("deep/concat"));
}

TEST(GraphBuilderTest, WhoReadsAConcatAndItsInputKeepsTheInputOutside) {
  const auto graph = Build(R"(
    layers { name: "both" inputs: "user.embedding" inputs: "item.embedding" concat {} }
    layers { name: "first" inputs: "both" linear { units: 4 } }
    layers { name: "cross" inputs: "first" inputs: "user.embedding" add {} }
    layers { name: "logit" inputs: "cross" linear { units: 1 } })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "user.embedding").within, -1);
  EXPECT_GE(Named(*graph, "item.embedding").within, 0);
}

TEST(GraphBuilderTest, ATensorTwiceInAConcatIsCopied) {
  const auto graph = Build(R"(
    layers { name: "both" inputs: "user.embedding" inputs: "user.embedding" concat {} }
    layers { name: "logit" inputs: "both" linear { units: 1 } })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "user.embedding").within, -1);
}

TEST(GraphBuilderTest, LayersMayStandInAnyOrder) {
  const auto graph = Build(R"(
    layers { name: "logit" inputs: "b" linear { units: 1 } }
    layers { name: "b" inputs: "a" activation {} }
    layers { name: "a" inputs: "numeric" linear { units: 5 } })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Order(*graph), "a b logit");
}

TEST(GraphBuilderTest, GradientsAreWantedWhereSomethingLearns) {
  const auto graph = Build(R"(
    layers { name: "a" inputs: "numeric" activation {} }
    layers { name: "logit" inputs: "a" linear { units: 1 } })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(Named(*graph, "a").needs_gradient);
  EXPECT_TRUE(Named(*graph, "logit").needs_gradient);
  EXPECT_TRUE(Named(*graph, "user.linear").needs_gradient);
}

// There are two segments of eight candidates, and parts of at most 20 samples.
GraphInputs WithCandidates() {
  GraphInputs inputs;
  inputs.segments = {{"user", "embedding", 4, 0}, {"item", "embedding", 4, 0}};
  inputs.candidates = {{kCandidateInput, "embedding", 4, 0}};
  inputs.max_candidates = 8;
  inputs.max_samples = 20;
  return inputs;
}

absl::StatusOr<Graph> BuildWithCandidates(const std::string& text, const GraphInputs& inputs) {
  ModelConfig model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return BuildGraph(model, inputs);
}

TEST(GraphBuilderTest, CandidatesBelongToThePart) {
  const auto graph = BuildWithCandidates(
      R"(layers { name: "logit" inputs: "user.embedding" inputs: "item.embedding"
                  inputs: "candidates.embedding" candidate_logits {} }
         tasks { loss: SAMPLED_SOFTMAX })",
      WithCandidates());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(Named(*graph, "candidates.embedding").of_part);
  EXPECT_EQ(Named(*graph, "candidates.embedding").shape, (SampleShape{8, 4}));
  EXPECT_EQ(Named(*graph, "logit").shape, (SampleShape{9}));
  EXPECT_EQ(graph->num_inputs, 4);
}

TEST(GraphBuilderTest, ScoresInABatchHaveAColumnForEachSampleOfAPart) {
  const auto graph = BuildWithCandidates(
      R"(layers { name: "logit" inputs: "user.embedding" inputs: "item.embedding"
                  in_batch_logits {} }
         tasks { loss: IN_BATCH_SOFTMAX })",
      WithCandidates());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "logit").shape, (SampleShape{20}));
}

TEST(GraphBuilderTest, OnlyAHeadReadsCandidatesAndOnlyItsLossReadsAHead) {
  const auto error = [](const std::string& text) {
    return std::string(BuildWithCandidates(text, WithCandidates()).status().message());
  };
  EXPECT_EQ(error(R"(layers { name: "logit" inputs: "candidates.embedding" sum {} })"),
            "model: layer \"logit\" (sum of candidates.embedding [8, 4]): reads the candidates of "
            "the part as input 0, but that input must have a value for each sample");
  EXPECT_EQ(error(R"(layers { name: "logit" inputs: "user.embedding" inputs: "item.embedding"
                              inputs: "item.embedding" candidate_logits {} }
                     tasks { loss: NCE })"),
            "model: layer \"logit\" (candidate_logits of user.embedding [4], item.embedding [4], "
            "item.embedding [4]): reads a value of each sample as input 2, but that input must be "
            "\"candidates.SEGMENT\"");
  EXPECT_EQ(error(R"(layers { name: "logit" inputs: "user.embedding" inputs: "item.embedding"
                              in_batch_logits {} }
                     tasks { loss: NCE })"),
            "model: output \"logit\" must be a layer candidate_logits for its loss");
  EXPECT_EQ(error(R"(layers { name: "logit" inputs: "user.embedding" inputs: "item.embedding"
                              in_batch_logits {} })"),
            "model: output \"logit\" must have the shape [1], but has [20]");
}

TEST(GraphBuilderTest, ErrorsNameTheLayerItsInputsAndTheirShapes) {
  EXPECT_EQ(
      ErrorOf(R"(layers { name: "logit" inputs: "user.embedding" inputs: "numeric" add {} })"),
      "model: layer \"logit\" (add of user.embedding [4], numeric [3]): takes inputs of one "
      "shape, but input 0 is [4] and input 1 is [3]");
  EXPECT_EQ(ErrorOf(R"(layers { name: "logit" inputs: "history.long" linear { units: 1 } })"),
            "model: layer \"logit\" (linear of history.long [50, 2]): takes inputs of shape [dim], "
            "but input 0 is [50, 2]");
  EXPECT_EQ(
      ErrorOf(R"(layers { name: "logit" inputs: "deep" linear { units: 1 } })"),
      "model: layer \"logit\" (linear of deep): reads \"deep\", which is neither a layer nor a "
      "graph input");
  EXPECT_EQ(
      ErrorOf(R"(layers { name: "logit" inputs: "numeric" linear {} })"),
      "model: layer \"logit\" (linear of numeric [3]): linear.units: must be at least 1, got 0");
  EXPECT_EQ(ErrorOf(R"(layers { name: "logit" inputs: "numeric" })"),
            "model: layer \"logit\" (no kind of numeric [3]): has no kind: set one of linear, mlp, "
            "batch_norm, ...");
}

TEST(GraphBuilderTest, ASequenceIsPooledByItsLength) {
  const auto graph = Build(R"(
    layers { name: "clicks" inputs: "history.long" inputs: "history.length" sequence_pool {} }
    layers { name: "logit" inputs: "clicks" linear { units: 1 } })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "history.length").shape, (SampleShape{1}));
  EXPECT_FALSE(Named(*graph, "history.length").needs_gradient);
  EXPECT_EQ(Named(*graph, "clicks").shape, (SampleShape{2}));
  EXPECT_TRUE(Named(*graph, "clicks").needs_gradient);
}

TEST(GraphBuilderTest, ASequenceWhereAVectorIsDueIsAnErrorThatSaysSo) {
  EXPECT_EQ(ErrorOf(R"(layers { name: "logit" inputs: "history.long" linear { units: 1 } })"),
            "model: layer \"logit\" (linear of history.long [50, 2]): takes inputs of shape [dim], "
            "but input 0 is [50, 2]");
  EXPECT_EQ(ErrorOf(R"(layers { name: "logit" inputs: "history.long" sequence_pool {} })"),
            "model: layer \"logit\" (sequence_pool of history.long [50, 2]): takes a sequence "
            "[length, dim] and its length [1], got [50, 2]");
  EXPECT_EQ(ErrorOf(R"(layers { name: "logit" inputs: "user.length" linear { units: 1 } })"),
            "model: layer \"logit\" (linear of user.length): reads \"user.length\", which is "
            "neither a layer nor a graph input");
}

TEST(GraphBuilderTest, NamesAreUniqueAndPlain) {
  EXPECT_EQ(ErrorOf(R"(layers { name: "a" inputs: "numeric" sum {} }
                       layers { name: "a" inputs: "numeric" sum {} })"),
            "model: two layers are named \"a\"");
  EXPECT_EQ(ErrorOf(R"(layers { name: "numeric" inputs: "numeric" sum {} })"),
            "model: layer \"numeric\" has the name of a graph input");
  EXPECT_EQ(ErrorOf(R"(layers { name: "a.b" inputs: "numeric" sum {} })"),
            "model: layer \"a.b\": a name must not contain any of . * / :");
  EXPECT_EQ(ErrorOf(R"(layers { inputs: "numeric" sum {} })"), "model: a layer has no name");
}

TEST(GraphBuilderTest, ACircleIsNamed) {
  EXPECT_EQ(ErrorOf(R"(
    layers { name: "a" inputs: "numeric" inputs: "c" concat {} }
    layers { name: "b" inputs: "a" linear { units: 2 } }
    layers { name: "c" inputs: "b" activation {} }
    layers { name: "logit" inputs: "c" linear { units: 1 } })"),
            "model: layers read each other in a cycle: a -> b -> c -> a");
}

TEST(GraphBuilderTest, EveryLayerIsOfUse) {
  EXPECT_EQ(ErrorOf(R"(layers { name: "logit" inputs: "numeric" sum {} }
                       layers { name: "lost" inputs: "*.linear" sum {} })"),
            "model: layer \"lost\" (sum of user.linear [1], item.linear [1]): is read by no layer "
            "and is not the output");
}

TEST(GraphBuilderTest, TheOutputIsOneLogit) {
  EXPECT_EQ(ErrorOf(R"(layers { name: "logit" inputs: "numeric" linear { units: 2 } })"),
            "model: output \"logit\" must have the shape [1], but has [2]");
  EXPECT_EQ(ErrorOf(R"(layers { name: "z" inputs: "numeric" sum {} })"),
            "model: output \"logit\" is not a layer");
  EXPECT_EQ(ErrorOf(""), "model: has no layers");
}

constexpr char kTwoTowers[] = R"(
    layers { name: "shared" inputs: "numeric" linear { units: 3 } }
    layers { name: "a" inputs: "shared" linear { units: 1 } }
    layers { name: "b" inputs: [ "shared", "a" ] mlp { units: 2 output_units: 4 } } )";

TEST(GraphBuilderTest, EachTaskHasAnOutputWhichLayersMayRead) {
  const auto graph = Build(std::string(kTwoTowers) + R"(
    tasks { name: "x" output: "a" }
    tasks { name: "y" output: "b" loss: SOFTMAX_CROSS_ENTROPY })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->outputs.size(), 2u);
  EXPECT_EQ(graph->tensors[graph->outputs[0]].name, "a");
  EXPECT_EQ(graph->tensors[graph->outputs[1]].name, "b/output");
  // The loss assigns the output's gradient. Therefore this gradient must not lie within the
  // gradient of the concatenation.
  EXPECT_LT(graph->tensors[graph->outputs[0]].within, 0);
}

TEST(GraphBuilderTest, AnOutputHasTheShapeOfItsLoss) {
  EXPECT_EQ(ErrorOf(std::string(kTwoTowers) + R"(tasks { name: "x" output: "a" }
                                                 tasks { name: "y" output: "b" loss: MSE })"),
            "model: output \"b/output\" must have the shape [1], but has [4]");
  EXPECT_EQ(
      ErrorOf(std::string(kTwoTowers) + R"(tasks { name: "x" output: "b"
                                                         loss: SOFTMAX_CROSS_ENTROPY }
                                                 tasks { name: "y" output: "a"
                                                         loss: SOFTMAX_CROSS_ENTROPY })"),
      "model: output \"a\" must have the shape [classes] with at least 2 classes, but has [1]");
}

TEST(GraphBuilderTest, AStarThatFitsNothingIsAnError) {
  EXPECT_EQ(ErrorOf(R"(layers { name: "logit" inputs: "*.wide" sum {} })"),
            "model: layer \"logit\": input \"*.wide\": no feature has a segment of this name");
}

TEST(GraphBuilderTest, EveryOutputOfALayerHasAName) {
  const auto graph = Build(R"(
    layers { name: "parts" inputs: "numeric" slice { ranges { size: 1 } ranges { begin: 1 size: 2 } } }
    layers { name: "logit" inputs: "parts:0" inputs: "parts:1" sum {} })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "parts").shape, (SampleShape{1}));
  EXPECT_EQ(Named(*graph, "parts:1").shape, (SampleShape{2}));
  EXPECT_EQ(ErrorOf(R"(
    layers { name: "parts" inputs: "numeric" slice { ranges { size: 1 } } }
    layers { name: "logit" inputs: "parts" inputs: "parts:1" sum {} })"),
            "model: layer \"logit\" (sum of parts, parts:1): reads \"parts:1\", which is neither a "
            "layer nor a graph input");
}

TEST(GraphBuilderTest, NoGradientIsWantedBeforeAStop) {
  const auto graph = Build(R"(
    layers { name: "stop" inputs: "user.linear" stop_gradient {} }
    layers { name: "logit" inputs: "stop" inputs: "item.linear" sum {} })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(Named(*graph, "stop").needs_gradient);
  EXPECT_TRUE(Named(*graph, "logit").needs_gradient);
}

TEST(GraphBuilderTest, AStackAndItsFlatteningLieInOnePlace) {
  const auto graph = Build(R"(
    layers { name: "fields" inputs: "*.embedding" stack {} }
    layers { name: "pairs" inputs: "fields" inner_product {} }
    layers { name: "flat" inputs: "fields" flatten {} }
    layers { name: "logit" inputs: "pairs" inputs: "flat" sum {} })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "fields").shape, (SampleShape{2, 4}));
  EXPECT_EQ(graph->tensors[Named(*graph, "item.embedding").within].name, "fields");
  EXPECT_EQ(graph->tensors[Named(*graph, "fields").within].name, "flat");
}

}  // namespace
}  // namespace satrap
