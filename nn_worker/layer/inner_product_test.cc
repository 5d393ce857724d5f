#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class InnerProductLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, InnerProductLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(InnerProductLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("inner_product {}", {{4}, {4}, {4}}, 2e-3);
  ExpectGradientsFit("inner_product {}", {{5, 3}}, 2e-3);
  ExpectGradientsFit("inner_product {}", {{16}, {16}}, 2e-3);
}

TEST_P(InnerProductLayerTest, IsUpperPairsInOrder) {
  LayerTester tester = Tester("inner_product {}", {{2}, {2, 2}, {2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 0});
  tester.SetValues(tester.inputs()[1], {0, 10, 1, 1});
  tester.SetValues(tester.inputs()[2], {2, 3});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{0, 1, 2, 10, 30, 5}));
}

TEST_P(InnerProductLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("inner_product {}", {{4}, {5}}),
            "takes vectors of one length, but input 0 is [4] and input 1 is [5]");
}

}  // namespace
}  // namespace satrap
