#include "nn_worker/layer/activation.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class ActivationLayerTest : public testing::Test {
 protected:
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples) {
    return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(ActivationLayerTest, GradientsAreThoseOfItsForward) {
  for (const char* kind : {"LINEAR", "SIGMOID", "TANH"}) {
    LayerTester tester = Tester(std::string("activation { kind: ") + kind + " }", {{2, 3}}, 4);
    EXPECT_LT(tester.LargestGradientError(), 1e-3) << kind;
  }
}

TEST_F(ActivationLayerTest, ReluOpensAboveZero) {
  LayerTester tester = Tester("activation { kind: RELU }", {{2}}, 1);
  tester.inputs()[0].f32()[0] = -1;
  tester.inputs()[0].f32()[1] = 2;
  ASSERT_TRUE(tester.Forward().ok());
  ASSERT_TRUE(tester.Backward().ok());
  EXPECT_EQ(tester.outputs()[0].f32()[0], 0);
  EXPECT_EQ(tester.outputs()[0].f32()[1], 2);
  EXPECT_EQ(tester.input_gradients()[0].f32()[0], 0);
  EXPECT_EQ(tester.input_gradients()[0].f32()[1], tester.output_weights()[0].f32()[1]);
}

}  // namespace
}  // namespace satrap
