#include "nn_worker/layer/layers.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class StopGradientLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, StopGradientLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(StopGradientLayerTest, IsTheIdentityWithoutAGradient) {
  for (const int64_t samples : {3, 1, 0}) {
    LayerTester tester = Tester("stop_gradient {}", {{2, 3}}, samples);
    ASSERT_TRUE(tester.Forward().ok());
    EXPECT_EQ(tester.Values(tester.outputs()[0]), tester.Values(tester.inputs()[0]));
    EXPECT_TRUE(tester.layer()->stops_gradient());
    backend_->Fill(tester.input_gradients()[0], 5);
    ASSERT_TRUE(tester.Backward(/*add=*/true).ok());
    EXPECT_EQ(tester.Values(tester.input_gradients()[0]), std::vector<float>(samples * 6, 5));
    ASSERT_TRUE(tester.Backward().ok());
    EXPECT_EQ(tester.Values(tester.input_gradients()[0]), std::vector<float>(samples * 6, 0));
  }
}

}  // namespace
}  // namespace satrap
