#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class FmLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, FmLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(FmLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("fm {}", {{4}, {4}, {4}}, 6);
  EXPECT_LT(tester.LargestGradientError(), 1e-3);
}

TEST_P(FmLayerTest, RefusesUnequalDims) {
  auto layer = NewFmLayer();
  EXPECT_EQ((*layer)->Infer({{4}, {5}}).status().message(),
            "takes inputs of one shape, but input 0 is [4] and input 1 is [5]");
}

}  // namespace
}  // namespace satrap
