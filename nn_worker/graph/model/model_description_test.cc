#include "nn_worker/graph/model/model_description.h"

#include <string>

#include "common/base/check.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/graph/model/graph_builder.h"

namespace satrap {
namespace {

Graph SmallGraph() {
  GraphInputs inputs;
  inputs.numeric_width = 3;
  for (const char* feature : {"f1", "f2", "f3"}) {
    inputs.segments.push_back({feature, "embedding", 4, 0});
  }
  ModelConfig model;
  CHECK(google::protobuf::TextFormat::ParseFromString(R"(
    layers { name: "all" inputs: "*.embedding" inputs: "numeric" concat {} }
    layers { name: "a" inputs: "all" linear { units: 1 } }
    layers { name: "b" inputs: "all" linear { units: 1 bias: false } }
    layers { name: "logit" inputs: "a" inputs: "b" add {} })",
                                                      &model));
  auto graph = BuildGraph(model, inputs);
  CHECK_OK(graph.status());
  return std::move(*graph);
}

TEST(ModelDescriptionTest, SaysWhatALayerIsMadeOf) {
  const Graph graph = SmallGraph();
  EXPECT_EQ(LayerTable(graph),
            "layer  kind    output  parameters  FLOPs  reads\n"
            "all    concat  [15]             0      0  f1.embedding ... f3.embedding (3), numeric\n"
            "a      linear  [1]             16     32  all\n"
            "b      linear  [1]             15     30  all\n"
            "logit  add     [1]              0      0  a, b\n");
  EXPECT_EQ(DenseParameters(graph), 31);
  EXPECT_EQ(ForwardFlops(graph), 62);
}

TEST(ModelDescriptionTest, DrawsFromTheOutputDown) {
  EXPECT_EQ(DrawAsText(SmallGraph()),
            "logit [1] add\n"
            "  a [1] linear\n"
            "    all [15] concat\n"
            "      f1.embedding ... f3.embedding (3) [4]\n"
            "      numeric [3]\n"
            "  b [1] linear\n"
            "    all [15] concat (above)\n");
}

TEST(ModelDescriptionTest, DrawsForGraphviz) {
  const std::string dot = DrawAsDot(SmallGraph());
  EXPECT_EQ(dot.find("digraph model {\n"), 0u);
  for (const char* line :
       {"  \"a\" [label=\"a\\nlinear [1]\"];\n",
        "  \"f1.embedding ... f3.embedding (3)\" [shape=ellipse];\n",
        "  \"numeric\" -> \"all\" [label=\"[3]\"];\n", "  \"all\" -> \"b\" [label=\"[15]\"];\n"}) {
    EXPECT_NE(dot.find(line), std::string::npos) << line << dot;
  }
  EXPECT_EQ(dot.substr(dot.size() - 2), "}\n");
}

}  // namespace
}  // namespace satrap
