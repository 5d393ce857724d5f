#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class LinearLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, LinearLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(LinearLayerTest, GradientsAreThoseOfItsForward) {
  struct Size {
    int in, units, samples;
  };
  for (const char* activation : {"LINEAR", "SIGMOID", "TANH"}) {
    // The last size is large enough that a backend asks a library for the product.
    for (const Size& size : {Size{5, 1, 70}, {5, 4, 70}, {9, 10, 12}}) {
      LayerTester tester = Tester(std::string("linear { units: ") + std::to_string(size.units) +
                                      " activation: " + activation + " }",
                                  {{size.in}}, size.samples);
      EXPECT_LT(tester.LargestGradientError(), 2e-3) << activation << " " << size.units;
    }
  }
}

TEST_P(LinearLayerTest, GradientsPassReluWhereItIsOpen) {
  LayerTester tester = Tester("linear { units: 3 activation: RELU bias: false }", {{2}}, 2);
  for (const Tensor& tensor :
       {tester.inputs()[0], tester.parameters()[0], tester.output_weights()[0]}) {
    backend_->Fill(tensor, 1);
  }
  tester.Set(tester.inputs()[0], 1, 0, -3);  // row 1: -2 in every unit
  ASSERT_TRUE(tester.Forward().ok());
  ASSERT_TRUE(tester.Backward().ok());
  EXPECT_EQ(tester.Get(tester.outputs()[0], 0, 2), 2);
  EXPECT_EQ(tester.Get(tester.outputs()[0], 1, 2), 0);
  EXPECT_EQ(tester.Get(tester.input_gradients()[0], 0, 1), 3);
  EXPECT_EQ(tester.Get(tester.input_gradients()[0], 1, 1), 0);
  EXPECT_EQ(tester.Get(tester.parameter_gradients()[0], 0, 0), 1);  // of row 0 alone
}

TEST_P(LinearLayerTest, AddsToAnInputGradientWhenAsked) {
  LayerTester tester = Tester("linear { units: 3 }", {{4}}, 5);
  ASSERT_TRUE(tester.Forward().ok());
  ASSERT_TRUE(tester.Backward().ok());
  const float once = tester.Get(tester.input_gradients()[0], 2, 1);
  ASSERT_TRUE(tester.Backward(/*add=*/true).ok());
  EXPECT_NEAR(tester.Get(tester.input_gradients()[0], 2, 1), 2 * once, 1e-6);
}

TEST_P(LinearLayerTest, OverNoInputsIsItsBias) {
  LayerTester tester = Tester("linear { units: 2 }", {{0}}, 3);
  tester.Set(tester.parameters()[1], 0, 1, 7);
  EXPECT_EQ(tester.parameters()[0].size(), 0);
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Get(tester.outputs()[0], 2, 1), 7);
  EXPECT_LT(tester.LargestGradientError(), 2e-3);
}

TEST_P(LinearLayerTest, ZeroSamplesGiveZeroGradients) {
  LayerTester tester = Tester("linear { units: 2 }", {{3}}, 0);
  backend_->Fill(tester.parameter_gradients()[0], 9);
  backend_->Fill(tester.parameter_gradients()[1], 9);
  ASSERT_TRUE(tester.Forward().ok());
  ASSERT_TRUE(tester.Backward().ok());
  EXPECT_EQ(tester.Get(tester.parameter_gradients()[0], 2, 1), 0);
  EXPECT_EQ(tester.Get(tester.parameter_gradients()[1], 0, 0), 0);
}

TEST_P(LinearLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("linear {}", {{4}}), "linear.units: must be at least 1, got 0");
  EXPECT_EQ(RefusalOf("linear { units: 3 }", {{4}, {5}}), "takes one input, got 2");
  EXPECT_EQ(RefusalOf("linear { units: 3 }", {{50, 16}}),
            "takes inputs of shape [dim], but input 0 is [50, 16]");
}

TEST_P(LinearLayerTest, InitialisesAsConfigured) {
  LinearConfig config;
  config.set_units(6);
  config.set_initializer(LinearConfig::TORCH_DEFAULT);
  auto layer = NewLinearLayer(config);
  ASSERT_TRUE((*layer)->Infer({{4}}).ok());
  const std::vector<ParameterSpec> specs = (*layer)->parameters();
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].initial, ParameterSpec::Initial::kUniform);
  EXPECT_DOUBLE_EQ(specs[0].scale, 0.5);
  EXPECT_DOUBLE_EQ(specs[1].scale, 0.5);
}

}  // namespace
}  // namespace satrap
