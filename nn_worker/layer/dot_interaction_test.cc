#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class DotInteractionLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, DotInteractionLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(DotInteractionLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("dot_interaction {}", {{4}, {4}, {4}}, 2e-3);
  ExpectGradientsFit("dot_interaction {}", {{3}, {4, 3}}, 2e-3);
  ExpectGradientsFit("dot_interaction {}", {{16}, {16}}, 2e-3);
}

TEST_P(DotInteractionLayerTest, IsTheFirstVectorThenLowerPairs) {
  LayerTester tester = Tester("dot_interaction {}", {{2}, {2}, {2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 2});
  tester.SetValues(tester.inputs()[1], {3, 4});
  tester.SetValues(tester.inputs()[2], {5, 6});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{1, 2, 11, 17, 39}));
}

TEST_P(DotInteractionLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("dot_interaction {}", {{4}}), "takes at least 2 vectors, got 1");
}

}  // namespace
}  // namespace satrap
