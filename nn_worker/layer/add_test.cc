#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class AddLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, AddLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(AddLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("add {}", {{2, 2}, {2, 2}, {2, 2}}, 5);
  EXPECT_LT(tester.LargestGradientError(), 1e-4);
}

TEST_P(AddLayerTest, GradientsOfScoresAreThoseOfTheirSum) {
  LayerTester tester = Tester("add {}", {{1}, {1}, {1}}, 5);
  EXPECT_LT(tester.LargestGradientError(), 1e-4);
}

TEST_P(AddLayerTest, RefusesUnequalShapes) {
  auto layer = NewAddLayer();
  EXPECT_EQ((*layer)->Infer({{4}, {5}}).status().message(),
            "takes inputs of one shape, but input 0 is [4] and input 1 is [5]");
  EXPECT_EQ((*layer)->Infer({}).status().message(), "takes at least one input, got none");
}

}  // namespace
}  // namespace satrap
