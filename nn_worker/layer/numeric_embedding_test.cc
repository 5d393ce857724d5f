#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class NumericEmbeddingLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, NumericEmbeddingLayerTest,
                         testing::ValuesIn(LayerBackends()), LayerBackendName);

TEST_P(NumericEmbeddingLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("numeric_embedding { dim: 4 }", {{3}}, 1e-3);
  ExpectGradientsFit("numeric_embedding { dim: 1 }", {{2}}, 1e-3);
  ExpectGradientsFit("numeric_embedding { dim: 16 }", {{1}}, 1e-3);
}

TEST_P(NumericEmbeddingLayerTest, IsAVectorTimesTheValue) {
  LayerTester tester = Tester("numeric_embedding { dim: 2 }", {{2}}, 1);
  tester.SetValues(tester.inputs()[0], {2, 0});
  tester.SetValues(tester.parameters()[0], {3, 4, 5, 6});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{6, 8, 0, 0}));
}

TEST_P(NumericEmbeddingLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("numeric_embedding {}", {{4}}),
            "numeric_embedding.dim: must be at least 1, got 0");
  EXPECT_EQ(RefusalOf("numeric_embedding { dim: 2 }", {{0}}), "takes at least one numeric");
  EXPECT_EQ(RefusalOf("numeric_embedding { dim: 2 stddev: -1 }", {{1}}),
            "numeric_embedding.stddev: must be finite and not negative, got -1");
}

}  // namespace
}  // namespace satrap
