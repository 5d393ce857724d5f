#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class BiasLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, BiasLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(BiasLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("bias {}", {{3}}, 6);
  EXPECT_LT(tester.LargestGradientError(), 1e-3);
}

}  // namespace
}  // namespace satrap
