#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class CrossLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, CrossLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(CrossLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("cross {}", {{5}, {5}}, 2e-3);
  ExpectGradientsFit("cross {}", {{1}, {1}}, 2e-3);
  ExpectGradientsFit("cross {}", {{33}, {33}}, 2e-3);
}

TEST_P(CrossLayerTest, ByHand) {
  LayerTester tester = Tester("cross {}", {{2}, {2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 2});
  tester.SetValues(tester.inputs()[1], {3, 4});
  tester.SetValues(tester.parameters()[0], {10, 45});
  tester.SetValues(tester.parameters()[1], {0, 0});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{213, 424}));
}

TEST_P(CrossLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("cross {}", {{4}, {5}}),
            "takes inputs of one shape, but input 0 is [4] and input 1 is [5]");
  EXPECT_EQ(RefusalOf("cross {}", {{4}}), "takes two inputs, got 1");
  EXPECT_EQ(RefusalOf("cross { layers: 2 }", {{4}, {4}}),
            "is a composite unless its field `layers` is 1: the graph expands it");
}

}  // namespace
}  // namespace satrap
