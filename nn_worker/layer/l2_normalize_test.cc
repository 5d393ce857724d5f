#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class L2NormalizeLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, L2NormalizeLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(L2NormalizeLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("l2_normalize {}", {{6}}, 5e-3);
  ExpectGradientsFit("l2_normalize { epsilon: 0.5 }", {{3, 4}}, 5e-3);
}

TEST_P(L2NormalizeLayerTest, LeavesZerosAlone) {
  LayerTester tester = Tester("l2_normalize {}", {{2, 2}}, 1);
  tester.SetValues(tester.inputs()[0], {3, 4, 0, 0});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{0.6f, 0.8f, 0, 0}));
}

TEST_P(L2NormalizeLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("l2_normalize { epsilon: -1 }", {{4}}),
            "l2_normalize.epsilon: must be finite and positive, got -1");
}

}  // namespace
}  // namespace satrap
