#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class InBatchLogitsLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, InBatchLogitsLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(InBatchLogitsLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("in_batch_logits {}", {{4}, {4}}, 5e-3);
  ExpectGradientsFit("in_batch_logits { scale: 3 }", {{3}, {3}}, 5e-3);
}

TEST_P(InBatchLogitsLayerTest, ScoresTheItemsOfAllSamples) {
  LayerTester tester = Tester("in_batch_logits { scale: 10 }", {{2}, {2}}, 2);
  tester.SetValues(tester.inputs()[0], {1, 0, 1, 2});
  tester.SetValues(tester.inputs()[1], {3, 4, 5, 6});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{30, 50, 110, 170}));
}

TEST_P(InBatchLogitsLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("in_batch_logits {}", {{4}}), "takes a user and an item, got 1 inputs");
  EXPECT_EQ(RefusalOf("in_batch_logits {}", {{4}, {5}}),
            "takes inputs of one shape, but input 0 is [4] and input 1 is [5]");
  EXPECT_EQ(RefusalOf("in_batch_logits { scale: -1 }", {{4}, {4}}),
            "in_batch_logits.scale: must be finite and positive, got -1");
}

}  // namespace
}  // namespace satrap
