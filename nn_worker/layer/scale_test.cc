#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class ScaleLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, ScaleLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(ScaleLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("scale { factor: -2.5 }", {{5}}, 1e-3);
  ExpectGradientsFit("scale {}", {{2, 3}}, 1e-3);
}

TEST_P(ScaleLayerTest, MultipliesByItsFactor) {
  LayerTester tester = Tester("scale { factor: 10 }", {{2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, -2});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{10, -20}));
}

TEST_P(ScaleLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("scale { factor: inf }", {{4}}), "scale.factor: must be finite, got inf");
}

}  // namespace
}  // namespace satrap
