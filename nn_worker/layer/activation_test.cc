#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class ActivationLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, ActivationLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(ActivationLayerTest, GradientsAreThoseOfItsForward) {
  for (const char* kind : {"LINEAR", "SIGMOID", "TANH"}) {
    LayerTester tester = Tester(std::string("activation { kind: ") + kind + " }", {{2, 3}}, 4);
    EXPECT_LT(tester.LargestGradientError(), 1e-3) << kind;
  }
}

TEST_P(ActivationLayerTest, ReluOpensAboveZero) {
  LayerTester tester = Tester("activation { kind: RELU }", {{2}}, 1);
  tester.Set(tester.inputs()[0], 0, 0, -1);
  tester.Set(tester.inputs()[0], 0, 1, 2);
  ASSERT_TRUE(tester.Forward().ok());
  ASSERT_TRUE(tester.Backward().ok());
  EXPECT_EQ(tester.Get(tester.outputs()[0], 0, 0), 0);
  EXPECT_EQ(tester.Get(tester.outputs()[0], 0, 1), 2);
  EXPECT_EQ(tester.Get(tester.input_gradients()[0], 0, 0), 0);
  EXPECT_EQ(tester.Get(tester.input_gradients()[0], 0, 1),
            tester.Get(tester.output_weights()[0], 0, 1));
}

}  // namespace
}  // namespace satrap
