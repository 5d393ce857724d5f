#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class TallyLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, TallyLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(TallyLayerTest, GivesZerosWhateverItsInputs) {
  LayerTester tester = Tester("tally {}", {{1}, {2}}, 3);
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), std::vector<float>(3, 0));
}

TEST_P(TallyLayerTest, GivesEachElementOfItsInputsTheConstantGradient) {
  LayerTester tester = Tester("tally { gradient: -2 }", {{1}, {2}}, 3);
  ASSERT_TRUE(tester.Forward().ok());
  ASSERT_TRUE(tester.Backward().ok());
  EXPECT_EQ(tester.Values(tester.input_gradients()[0]), std::vector<float>(3, -2));
  EXPECT_EQ(tester.Values(tester.input_gradients()[1]), std::vector<float>(6, -2));
}

}  // namespace
}  // namespace satrap
