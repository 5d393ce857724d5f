#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class DropoutLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, DropoutLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(DropoutLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("dropout { rate: 0.4 }", {{7}}, 6);
  EXPECT_LT(tester.LargestGradientError(), 1e-3);
}

TEST_P(DropoutLayerTest, MaskDependsOnStepAndSampleOfTheStepAlone) {
  LayerTester whole = Tester("dropout { rate: 0.5 }", {{40}}, 6);
  LayerTester half = Tester("dropout { rate: 0.5 }", {{40}}, 3);
  backend_->Fill(whole.inputs()[0], 1);
  backend_->Fill(half.inputs()[0], 1);
  half.pass.first_sample_of_step += 3;
  ASSERT_TRUE(whole.Forward().ok());
  ASSERT_TRUE(half.Forward().ok());
  const auto row = [&](const Tensor& y, int64_t i) {
    return ReadFloats(backend_.get(), y.Rows(i, 1));
  };
  EXPECT_EQ(row(whole.outputs()[0], 4), row(half.outputs()[0], 1));
  EXPECT_NE(row(whole.outputs()[0], 4), row(whole.outputs()[0], 3));
  half.pass.step += 1;
  ASSERT_TRUE(half.Forward().ok());
  EXPECT_NE(row(whole.outputs()[0], 4), row(half.outputs()[0], 1));
}

TEST_P(DropoutLayerTest, EvaluationPassesThrough) {
  LayerTester tester = Tester("dropout { rate: 0.5 }", {{40}}, 2);
  tester.pass.training = false;
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Get(tester.outputs()[0], 1, 39), tester.Get(tester.inputs()[0], 1, 39));
}

TEST_P(DropoutLayerTest, RefusesARateOfOne) {
  EXPECT_EQ(RefusalOf("dropout { rate: 1 }", {{4}}), "dropout.rate: must be in [0, 1), got 1");
}

}  // namespace
}  // namespace satrap
