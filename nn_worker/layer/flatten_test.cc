#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class FlattenLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, FlattenLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(FlattenLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("flatten {}", {{4, 3}}, 1e-3);
  ExpectGradientsFit("flatten {}", {{4}}, 1e-3);
}

TEST_P(FlattenLayerTest, KeepsTheOrder) {
  LayerTester tester = Tester("flatten {}", {{2, 2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 2, 3, 4});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(FlattenLayerTest, MakesOneVector) {
  const std::vector<SampleShape> inputs = {{4, 3}};
  EXPECT_EQ(Tester("flatten {}", inputs, 1).layer()->Infer(inputs)->front(), SampleShape{12});
}

TEST_P(FlattenLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("flatten {}", {{4}, {4}}), "takes one input, got 2");
}

}  // namespace
}  // namespace satrap
