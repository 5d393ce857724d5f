#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class SliceLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, SliceLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(SliceLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("slice { ranges { begin: 1 size: 2 } ranges { size: 4 } }", {{5}}, 1e-3);
  ExpectGradientsFit("slice { ranges { begin: 1 size: 2 } ranges { size: 4 } }", {{4, 3}}, 1e-3);
  ExpectGradientsFit("slice { ranges { begin: 2 size: 1 } }", {{4}}, 1e-3);
}

TEST_P(SliceLayerTest, RangesAreOfTheFirstAxis) {
  LayerTester tester =
      Tester("slice { ranges { begin: 1 size: 2 } ranges { size: 1 } }", {{3, 2}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(tester.Values(tester.outputs()[1]), (std::vector<float>{1, 2}));
}

TEST_P(SliceLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("slice { ranges { begin: 3 size: 2 } }", {{4}}),
            "the range of 2 elements from 3 is not within [4]");
  EXPECT_EQ(RefusalOf("slice {}", {{4}}), "needs at least one range");
  EXPECT_EQ(RefusalOf("slice { ranges { begin: -1 size: 2 } }", {{4}}),
            "slice.ranges[0].begin: must be at least 0, got -1");
  EXPECT_EQ(RefusalOf("slice { ranges { begin: 1 } }", {{4}}),
            "slice.ranges[0].size: must be at least 1, got 0");
}

}  // namespace
}  // namespace satrap
