#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class SoftmaxLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, SoftmaxLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(SoftmaxLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("softmax {}", {{5}}, 1e-3);
  ExpectGradientsFit("softmax {}", {{3, 4}}, 1e-3);
  ExpectGradientsFit("softmax {}", {{1}}, 1e-3);
}

TEST_P(SoftmaxLayerTest, EachGroupSumsToOne) {
  LayerTester tester = Tester("softmax {}", {{2, 2}}, 1);
  tester.SetValues(tester.inputs()[0], {7, 7, 0, 200});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{0.5f, 0.5f, 0, 1}));
}

TEST_P(SoftmaxLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("softmax {}", {{4}, {4}}), "takes one input, got 2");
}

}  // namespace
}  // namespace satrap
