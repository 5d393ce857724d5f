#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class ConcatLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, ConcatLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(ConcatLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("concat {}", {{2}, {0}, {3}}, 5);
  EXPECT_LT(tester.LargestGradientError(), 1e-4);
  EXPECT_EQ(tester.outputs()[0].cols, 5);
  EXPECT_EQ(tester.Get(tester.outputs()[0], 4, 2), tester.Get(tester.inputs()[2], 4, 0));
}

TEST_P(ConcatLayerTest, RefusesSequences) {
  auto layer = NewConcatLayer();
  EXPECT_EQ((*layer)->Infer({{4}, {5, 2}}).status().message(),
            "takes inputs of shape [dim], but input 1 is [5, 2]");
}

}  // namespace
}  // namespace satrap
