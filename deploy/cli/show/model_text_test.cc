#include "deploy/cli/show/model_text.h"

#include "gmock/gmock.h"
#include "nn_worker/zoo/zoo.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

TEST(ModelTextTest, ListsTheZooWithItsComments) {
  const std::string text = ZooText();
  for (const std::string& name : ZooNames())
    EXPECT_THAT("\n" + text, HasSubstr("\n" + name + "\n"));
  EXPECT_THAT(text, HasSubstr("  DeepFM (Guo et al. 2017): a factorization machine and an MLP"));
}

TEST(ModelTextTest, CountsLayersTablesAndOperations) {
  const ModelConfig model = *ZooModel("fm");
  const GraphInputs inputs = ExampleInputs(model, {10, 0, 10});
  const auto with_rows = ModelText(model, inputs, {{"ids", 11}}, 5389);
  ASSERT_TRUE(with_rows.ok()) << with_rows.status();
  EXPECT_THAT(*with_rows, HasSubstr("table ids   5,389 rows of 11 values = 59,279\n"));
  EXPECT_THAT(*with_rows, HasSubstr("dense parameters   1\n"));
  EXPECT_THAT(*with_rows, HasSubstr("all parameters   59,280\n"));
  EXPECT_THAT(*with_rows, HasSubstr("\nlogit [1] bias\n  sum [1] add\n"));
  EXPECT_THAT(*ModelText(model, inputs, {{"ids", 11}}, 0),
              HasSubstr("table ids   11 values a row (--rows N counts N rows)\n"));
}

TEST(ModelTextTest, SaysWhatDoesNotFit) {
  const ModelConfig model = *ZooModel("dlrm");
  EXPECT_THAT(
      std::string(ModelText(model, ExampleInputs(model, {3, 2, 8}), {}, 0).status().message()),
      HasSubstr("takes vectors of one length"));
  EXPECT_FALSE(ModelDot(model, ExampleInputs(model, {3, 2, 8})).ok());
  EXPECT_THAT(*ModelDot(model, ExampleInputs(model, {3, 2, 16})), HasSubstr("digraph"));
}

}  // namespace
}  // namespace satrap
