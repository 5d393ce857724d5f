#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class MultiplyLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, MultiplyLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(MultiplyLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("multiply {}", {{5}, {5}}, 1e-3);
  ExpectGradientsFit("multiply {}", {{3, 4}, {3, 4}}, 1e-3);
  ExpectGradientsFit("multiply {}", {{3, 4}, {1}}, 1e-3);
  ExpectGradientsFit("multiply {}", {{1}, {1}}, 1e-3);
}

TEST_P(MultiplyLayerTest, OneFactorMultipliesAllOfASample) {
  LayerTester tester = Tester("multiply {}", {{2}, {1}}, 1);
  tester.SetValues(tester.inputs()[0], {3, 4});
  tester.SetValues(tester.inputs()[1], {10});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{30, 40}));
}

TEST_P(MultiplyLayerTest, ATensorMayBeMultipliedByItself) {
  LayerTester tester = Tester("multiply {}", {{1}, {1}}, 1);
  tester.SetValues(tester.inputs()[0], {3});
  tester.SetValues(tester.output_weights()[0], {1});
  const std::vector<Tensor> twice = {tester.inputs()[0], tester.inputs()[0]};
  const Tensor dx = tester.input_gradients()[0];
  const std::vector<GradientTarget> dxs = {{dx, false}, {dx, true}};
  ASSERT_TRUE(tester.layer()->Forward(tester.pass, twice, tester.outputs()).ok());
  EXPECT_EQ(tester.Get(tester.outputs()[0]), 9);
  ASSERT_TRUE(tester.layer()
                  ->Backward(tester.pass, twice, tester.outputs(), tester.output_weights(), dxs)
                  .ok());
  EXPECT_EQ(tester.Get(dx), 6);
}

TEST_P(MultiplyLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("multiply {}", {{4}, {5}}),
            "takes inputs of one shape, but input 0 is [4] and input 1 is [5]");
  EXPECT_EQ(RefusalOf("multiply {}", {{4}}), "takes two inputs, got 1");
}

}  // namespace
}  // namespace satrap
