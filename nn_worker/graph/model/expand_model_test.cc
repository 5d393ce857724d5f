#include "nn_worker/graph/model/expand_model.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

absl::StatusOr<ExpandedModel> Expand(const std::string& layers) {
  ModelConfig model;
  CHECK(google::protobuf::TextFormat::ParseFromString(layers, &model)) << layers;
  GraphInputs inputs;
  inputs.segments = {{"user", "embedding", 4, 0}, {"item", "embedding", 4, 0}};
  return ExpandModel(model, inputs);
}

// Returns text of the form "name(input, input) name(input)".
std::string TextOf(const absl::StatusOr<ExpandedModel>& model) {
  if (!model.ok()) return std::string(model.status().message());
  return absl::StrJoin(model->layers, " ", [](std::string* out, const LayerConfig& layer) {
    absl::StrAppend(out, layer.name(), "(", absl::StrJoin(layer.inputs(), ", "), ")");
  });
}

TEST(ExpandModelTest, EachCrossLayerReadsTheInputAndTheOneBefore) {
  const auto model = Expand(R"(
    layers { name: "x" inputs: "*.embedding" cross { layers: 2 } }
    layers { name: "y" inputs: "x" cross_v2 { layers: 2 rank: 3 } })");
  EXPECT_EQ(TextOf(model),
            "x/concat(user.embedding, item.embedding) x/cross_0(x/concat, x/concat) "
            "x/cross_1(x/concat, x/cross_0) y/cross_0(x/cross_1, x/cross_1) "
            "y/cross_1(x/cross_1, y/cross_0)");
  EXPECT_EQ(model->layers[1].cross().layers(), 1);
  EXPECT_EQ(model->layers[4].cross_v2().layers(), 1);
  EXPECT_EQ(model->layers[4].cross_v2().rank(), 3);
}

TEST(ExpandModelTest, AttentionIsFollowedByLayerNormAndRelu) {
  const auto model = Expand(R"(
    layers { name: "x" inputs: "user.embedding" attention { units: 8 heads: 2 layers: 2 } }
    layers { name: "y" inputs: "x" attention { units: 8 layer_norm: true } }
    output: "y")");
  EXPECT_EQ(TextOf(model),
            "x/attention_0(user.embedding) x/activation_0(x/attention_0) "
            "x/attention_1(x/activation_0) x/activation_1(x/attention_1) "
            "y/attention_0(x/activation_1) y/layer_norm_0(y/attention_0) "
            "y/activation_0(y/layer_norm_0)");
  EXPECT_EQ(model->layers[0].attention().heads(), 2);
  EXPECT_EQ(model->layers[1].activation().kind(), ActivationConfig::RELU);
  EXPECT_EQ(model->outputs, std::vector<std::string>{"y/activation_0"});
}

TEST(ExpandModelTest, TheFirstOutputHasTheNameOfItsLayer) {
  EXPECT_EQ(TextOf(Expand(R"(
    layers { name: "parts" inputs: "user.embedding" slice {} }
    layers { name: "deep" inputs: "parts:0" inputs: "parts:1" mlp { units: 4 } }
    layers { name: "logit" inputs: "deep:0" inputs: "absent:0" add {} })")),
            "parts(user.embedding) deep/concat(parts, parts:1) deep/linear_0(deep/concat) "
            "logit(deep/linear_0, absent:0)");
}

TEST(ExpandModelTest, SaysWhatIsNoComposite) {
  EXPECT_EQ(TextOf(Expand("layers { name: 'x' inputs: '*.embedding' cross { layers: 0 } }")),
            "model: layer \"x\": cross.layers: must be in [1, 64], got 0");
  EXPECT_EQ(TextOf(Expand("layers { name: 'x' inputs: '*.embedding' cross_v2 { layers: 65 } }")),
            "model: layer \"x\": cross_v2.layers: must be in [1, 64], got 65");
  EXPECT_EQ(TextOf(Expand("layers { name: 'x' inputs: '*.embedding' attention { units: 4 } }")),
            "model: layer \"x\": attention: takes one input, such as the output of a stack, got 2");
  EXPECT_EQ(TextOf(Expand("layers { name: 'x' inputs: '*.embedding' mlp {} }")),
            "model: layer \"x\": mlp: no units");
}

}  // namespace
}  // namespace satrap
