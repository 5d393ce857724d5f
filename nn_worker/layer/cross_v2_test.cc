#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class CrossV2LayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, CrossV2LayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(CrossV2LayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("cross_v2 {}", {{5}, {5}}, 2e-3);
  ExpectGradientsFit("cross_v2 { rank: 2 }", {{5}, {5}}, 2e-3);
  ExpectGradientsFit("cross_v2 {}", {{1}, {1}}, 2e-3);
  ExpectGradientsFit("cross_v2 { rank: 1 }", {{17}, {17}}, 2e-3);
}

TEST_P(CrossV2LayerTest, ByHand) {
  LayerTester tester = Tester("cross_v2 {}", {{2}, {2}}, 1);
  tester.SetValues(tester.inputs()[0], {10, 100});
  tester.SetValues(tester.inputs()[1], {1, 2});
  tester.SetValues(tester.parameters()[0], {1, 2, 3, 4});
  tester.SetValues(tester.parameters()[1], {1, 0});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{81, 1002}));
}

TEST_P(CrossV2LayerTest, OfLowRankByHand) {
  LayerTester tester = Tester("cross_v2 { rank: 1 }", {{2}, {2}}, 1);
  tester.SetValues(tester.inputs()[0], {10, 100});
  tester.SetValues(tester.inputs()[1], {1, 2});
  tester.SetValues(tester.parameters()[0], {1, 1});
  tester.SetValues(tester.parameters()[1], {3, 3});
  tester.SetValues(tester.parameters()[2], {0, 1});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{91, 1002}));
}

TEST_P(CrossV2LayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("cross_v2 {}", {{4}, {5}}),
            "takes inputs of one shape, but input 0 is [4] and input 1 is [5]");
  EXPECT_EQ(RefusalOf("cross_v2 { rank: -1 }", {{4}, {4}}),
            "cross_v2.rank: must be at least 0, got -1");
}

}  // namespace
}  // namespace satrap
