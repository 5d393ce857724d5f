#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class CinLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, CinLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(CinLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("cin { units: 3 }", {{4}, {4}, {4}}, 5e-3);
  ExpectGradientsFit("cin { units: 3 units: 2 units: 4 }", {{3, 5}}, 5e-3);
  ExpectGradientsFit("cin { units: 2 units: 2 bias: false }", {{2}, {2}}, 5e-3);
  ExpectGradientsFit("cin { units: 2 }", {{4}}, 5e-3);
}

TEST_P(CinLayerTest, ByHand) {
  LayerTester tester = Tester("cin { units: 2 units: 1 }", {{2}, {2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 2});
  tester.SetValues(tester.inputs()[1], {3, 4});
  tester.SetValues(tester.parameters()[0], {0, 1, 1, 0, 0, 0, 0, 1});
  tester.SetValues(tester.parameters()[1], {1, 0});
  tester.SetValues(tester.parameters()[2], {0, 1, 1, 0});
  tester.SetValues(tester.parameters()[3], {0});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{13, 30, 98}));
}

TEST_P(CinLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("cin {}", {{4}}), "needs units");
  EXPECT_EQ(RefusalOf("cin { units: 0 }", {{4}}), "cin.units[0]: must be at least 1, got 0");
}

}  // namespace
}  // namespace satrap
