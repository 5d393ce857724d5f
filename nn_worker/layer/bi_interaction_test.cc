#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class BiInteractionLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, BiInteractionLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(BiInteractionLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("bi_interaction {}", {{4}, {4}, {4}}, 2e-3);
  ExpectGradientsFit("bi_interaction {}", {{5, 3}}, 2e-3);
  ExpectGradientsFit("bi_interaction {}", {{4}}, 2e-3);
}

TEST_P(BiInteractionLayerTest, ByHand) {
  LayerTester tester = Tester("bi_interaction {}", {{2}, {2}, {2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 2});
  tester.SetValues(tester.inputs()[1], {3, -1});
  tester.SetValues(tester.inputs()[2], {0, 4});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{3, 2}));
}

TEST_P(BiInteractionLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("bi_interaction {}", {{4}, {5}}),
            "takes vectors of one length, but input 0 is [4] and input 1 is [5]");
}

}  // namespace
}  // namespace satrap
