#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class FwfmLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, FwfmLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(FwfmLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("fwfm {}", {{4}, {4}, {4}}, 2e-3);
  ExpectGradientsFit("fwfm {}", {{5, 3}}, 2e-3);
  ExpectGradientsFit("fwfm {}", {{16}, {16}}, 2e-3);
}

TEST_P(FwfmLayerTest, WeighsEachPair) {
  LayerTester tester = Tester("fwfm {}", {{1}, {1}, {1}}, 1);
  tester.SetValues(tester.inputs()[0], {2});
  tester.SetValues(tester.inputs()[1], {3});
  tester.SetValues(tester.inputs()[2], {5});
  tester.SetValues(tester.parameters()[0], {1, 10, 100});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{1606}));
}

TEST_P(FwfmLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("fwfm {}", {{4}}), "takes at least 2 vectors, got 1");
}

}  // namespace
}  // namespace satrap
