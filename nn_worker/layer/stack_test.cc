#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class StackLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, StackLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(StackLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("stack {}", {{4}, {4}, {4}}, 1e-3);
  ExpectGradientsFit("stack {}", {{2, 3}, {3}}, 1e-3);
}

TEST_P(StackLayerTest, PutsFieldsOneAfterAnother) {
  LayerTester tester = Tester("stack {}", {{2}, {2, 2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 2});
  tester.SetValues(tester.inputs()[1], {3, 4, 5, 6});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_P(StackLayerTest, CountsTheVectors) {
  LayerTester tester = Tester("stack {}", {{2, 3}, {3}}, 1);
  const std::vector<SampleShape> inputs = {{2, 3}, {3}};
  EXPECT_EQ(tester.layer()->Infer(inputs)->front(), (SampleShape{3, 3}));
  EXPECT_TRUE(tester.layer()->inputs_within_output());
}

TEST_P(StackLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("stack {}", {{4}, {3}}),
            "takes vectors of one length, but input 0 is [4] and input 1 is [3]");
  EXPECT_EQ(RefusalOf("stack {}", {}), "takes at least 1 vectors, got 0");
}

}  // namespace
}  // namespace satrap
