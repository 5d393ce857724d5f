#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class SumLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, SumLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(SumLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("sum {}", {{1}, {3}, {2}}, 6);
  EXPECT_LT(tester.LargestGradientError(), 1e-4);
  EXPECT_EQ(tester.outputs()[0].cols, 1);
}

}  // namespace
}  // namespace satrap
