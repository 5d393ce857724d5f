#include "nn_worker/layer/layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class AttentionLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, AttentionLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(AttentionLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("attention { units: 6 heads: 2 }", {{3, 4}}, 1e-2);
  ExpectGradientsFit("attention { units: 4 heads: 1 scale: false }", {{5, 4}}, 1e-2);
  ExpectGradientsFit("attention { units: 4 heads: 4 residual: false }", {{2, 3}}, 1e-2);
  ExpectGradientsFit("attention { units: 16 heads: 2 }", {{1, 16}}, 1e-2);
}

TEST_P(AttentionLayerTest, EqualScoresGiveTheMeanOfTheValues) {
  LayerTester tester = Tester("attention { units: 1 residual: false }", {{2, 1}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 3});
  tester.SetValues(tester.parameters()[0], {0});
  tester.SetValues(tester.parameters()[1], {5});
  tester.SetValues(tester.parameters()[2], {10});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{20, 20}));
}

TEST_P(AttentionLayerTest, TheResidualIsAdded) {
  LayerTester tester = Tester("attention { units: 1 }", {{2, 1}}, 1);
  tester.SetValues(tester.inputs()[0], {1, 3});
  tester.SetValues(tester.parameters()[0], {0});
  tester.SetValues(tester.parameters()[1], {5});
  tester.SetValues(tester.parameters()[2], {10});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{21, 23}));
}

TEST_P(AttentionLayerTest, ScoresAreScaledByTheRootOfTheHead) {
  LayerTester tester = Tester("attention { units: 4 heads: 1 residual: false }", {{2, 1}}, 1);
  tester.SetValues(tester.inputs()[0], {0, 1});
  tester.SetValues(tester.parameters()[0], {1, 1, 1, 1});
  tester.SetValues(tester.parameters()[1], {1, 1, 1, 1});
  tester.SetValues(tester.parameters()[2], {1, 1, 1, 1});
  ASSERT_TRUE(tester.Forward().ok());
  const std::vector<float> want = {0.5f,      0.5f,      0.5f,      0.5f,
                                   0.880797f, 0.880797f, 0.880797f, 0.880797f};
  const std::vector<float> got = tester.Values(tester.outputs()[0]);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST_P(AttentionLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("attention { units: 6 heads: 4 }", {{2, 4}}),
            "units must be a multiple of heads, got 6 units, 4 heads");
  EXPECT_EQ(RefusalOf("attention { units: 4 }", {{4}}),
            "takes vectors [k, d], such as the output of a stack, got [4]");
  EXPECT_EQ(RefusalOf("attention { units: 4 layers: 2 }", {{2, 4}}),
            "is a composite: the graph expands it");
}

}  // namespace
}  // namespace satrap
