#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class LayerNormLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, LayerNormLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(LayerNormLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("layer_norm {}", {{6}}, 5e-3);
  ExpectGradientsFit("layer_norm { epsilon: 0.1 }", {{3, 16}}, 5e-3);
  ExpectGradientsFit("layer_norm {}", {{2, 5}}, 5e-3);
}

TEST_P(LayerNormLayerTest, NormalisesEachVector) {
  LayerTester tester = Tester("layer_norm { epsilon: 1e-12 }", {{2, 2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 3, 10, 20});
  tester.SetValues(tester.parameters()[0], {1, 2});
  tester.SetValues(tester.parameters()[1], {0, 10});
  ASSERT_TRUE(tester.Forward().ok());
  const std::vector<float> want = {-1, 12, -1, 12};
  const std::vector<float> got = tester.Values(tester.outputs()[0]);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST_P(LayerNormLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("layer_norm { epsilon: 0 }", {{4}}),
            "layer_norm.epsilon: must be finite and positive, got 0");
}

}  // namespace
}  // namespace satrap
