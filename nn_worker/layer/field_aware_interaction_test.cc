#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class FieldAwareInteractionLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, FieldAwareInteractionLayerTest,
                         testing::ValuesIn(LayerBackends()), LayerBackendName);

TEST_P(FieldAwareInteractionLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("field_aware_interaction {}", {{6}, {6}, {6}}, 2e-3);
  ExpectGradientsFit("field_aware_interaction {}", {{5}, {5}}, 2e-3);
  ExpectGradientsFit("field_aware_interaction {}", {{4, 6}}, 2e-3);
}

TEST_P(FieldAwareInteractionLayerTest, EachFieldHasAVectorForEachOther) {
  LayerTester tester = Tester("field_aware_interaction {}", {{2}, {2}, {2}}, 1);
  tester.SetValues(tester.inputs()[0], {2, 3});
  tester.SetValues(tester.inputs()[1], {5, 7});
  tester.SetValues(tester.inputs()[2], {11, 13});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{134}));
}

TEST_P(FieldAwareInteractionLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("field_aware_interaction {}", {{5}, {5}, {5}}),
            "each field must hold a vector for each of the 2 other fields, so its dim must be a "
            "multiple of 2, got 5");
}

}  // namespace
}  // namespace satrap
