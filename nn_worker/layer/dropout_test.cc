#include "nn_worker/layer/dropout.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class DropoutLayerTest : public testing::Test {
 protected:
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples) {
    return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(DropoutLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("dropout { rate: 0.4 }", {{7}}, 6);
  EXPECT_LT(tester.LargestGradientError(), 1e-3);
}

TEST_F(DropoutLayerTest, MaskDependsOnStepAndSampleOfTheStepAlone) {
  LayerTester whole = Tester("dropout { rate: 0.5 }", {{40}}, 6);
  LayerTester half = Tester("dropout { rate: 0.5 }", {{40}}, 3);
  backend_->Fill(whole.inputs()[0], 1);
  backend_->Fill(half.inputs()[0], 1);
  half.pass.first_sample_of_step += 3;
  ASSERT_TRUE(whole.Forward().ok());
  ASSERT_TRUE(half.Forward().ok());
  const auto row = [](const Tensor& y, int64_t i) {
    return std::vector<float>(y.f32(i), y.f32(i) + y.cols);
  };
  EXPECT_EQ(row(whole.outputs()[0], 4), row(half.outputs()[0], 1));
  EXPECT_NE(row(whole.outputs()[0], 4), row(whole.outputs()[0], 3));
  half.pass.step += 1;
  ASSERT_TRUE(half.Forward().ok());
  EXPECT_NE(row(whole.outputs()[0], 4), row(half.outputs()[0], 1));
}

TEST_F(DropoutLayerTest, EvaluationPassesThrough) {
  LayerTester tester = Tester("dropout { rate: 0.5 }", {{40}}, 2);
  tester.pass.training = false;
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.outputs()[0].f32(1)[39], tester.inputs()[0].f32(1)[39]);
}

TEST_F(DropoutLayerTest, RefusesARateOfOne) {
  DropoutConfig config;
  config.set_rate(1);
  EXPECT_EQ(NewDropoutLayer(config).status().message(), "rate must be in [0, 1), got 1");
}

}  // namespace
}  // namespace satrap
