#include "nn_worker/layer/layers.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class CandidateLogitsLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, CandidateLogitsLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(CandidateLogitsLayerTest, GradientsAreThoseOfItsForward) {
  ExpectGradientsFit("candidate_logits {}", {{4}, {4}, {7, 4}}, 5e-3);
  ExpectGradientsFit("candidate_logits { scale: 3 }", {{3}, {3}, {1, 3}}, 5e-3);
  ExpectGradientsFit("candidate_logits { scale: 2 bias: true }", {{5}, {5}, {3, 5}, {1}, {3, 1}},
                     5e-3);
  ExpectGradientsFit("candidate_logits { scale: 4 normalize: true }", {{16}, {16}, {5, 16}}, 2e-2);
  ExpectGradientsFit("candidate_logits { bias: true normalize: true }",
                     {{2}, {2}, {9, 2}, {1}, {9, 1}}, 2e-2);
}

TEST_P(CandidateLogitsLayerTest, ScoresThePositiveAndThenTheCandidates) {
  LayerTester tester =
      Tester("candidate_logits { scale: 2 bias: true }", {{2}, {2}, {3, 2}, {1}, {3, 1}}, 2);
  tester.SetValues(tester.inputs()[0], {1, 0, 1, 2});
  tester.SetValues(tester.inputs()[1], {3, 4, 5, 6});
  tester.SetValues(tester.inputs()[2], {1, 1, 0, 10, -1, 0});
  tester.SetValues(tester.inputs()[3], {100, 200});
  tester.SetValues(tester.inputs()[4], {10, 20, 30});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]),
            (std::vector<float>{106, 12, 20, 28, 234, 16, 60, 28}));
}

TEST_P(CandidateLogitsLayerTest, OfNormalizedVectorsIsTheCosine) {
  LayerTester tester = Tester("candidate_logits { normalize: true }", {{2}, {2}, {1, 2}}, 1);
  tester.SetValues(tester.inputs()[0], {3, 4});
  tester.SetValues(tester.inputs()[1], {8, 6});
  tester.SetValues(tester.inputs()[2], {0, -5});
  ASSERT_TRUE(tester.Forward().ok());
  const std::vector<float> scores = tester.Values(tester.outputs()[0]);
  EXPECT_NEAR(scores[0], .96, 1e-6);
  EXPECT_NEAR(scores[1], -.8, 1e-6);
}

// An evaluation has no candidates, and a part may have fewer than the model's number.
TEST_P(CandidateLogitsLayerTest, TakesFewerCandidatesThanThereMayBe) {
  LayerTester tester = Tester("candidate_logits {}", {{2}, {2}, {3, 2}}, 2);
  tester.SetValues(tester.inputs()[0], {1, 0, 1, 2});
  tester.SetValues(tester.inputs()[1], {3, 4, 5, 6});
  tester.SetValues(tester.inputs()[2], {1, 1, 0, 10, -1, 0});
  tester.SetValues(tester.outputs()[0], {7, 7, 7, 7, 7, 7, 7, 7});
  tester.inputs()[2] = tester.inputs()[2].FirstRows(1);
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{3, 1, 7, 7, 17, 3, 7, 7}));
  tester.inputs()[2] = tester.inputs()[2].FirstRows(0);
  tester.SetValues(tester.outputs()[0], {7, 7, 7, 7, 7, 7, 7, 7});
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Values(tester.outputs()[0]), (std::vector<float>{3, 7, 7, 7, 17, 7, 7, 7}));
}

TEST_P(CandidateLogitsLayerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf("candidate_logits {}", {{4}, {4}}), "takes 3 inputs without bias, got 2");
  EXPECT_EQ(RefusalOf("candidate_logits { bias: true }", {{4}, {4}, {9, 4}}),
            "takes 5 inputs with bias, got 3");
  EXPECT_EQ(RefusalOf("candidate_logits {}", {{4}, {4}, {4}}),
            "takes candidates [S, d] as input 2, got [4]");
  EXPECT_EQ(RefusalOf("candidate_logits {}", {{4}, {3}, {9, 4}}), "takes [4] as input 1, got [3]");
  EXPECT_EQ(RefusalOf("candidate_logits { bias: true }", {{4}, {4}, {9, 4}, {1}, {9, 2}}),
            "takes [9, 1] as input 4, got [9, 2]");
  EXPECT_EQ(RefusalOf("candidate_logits { scale: 0 }", {{4}, {4}, {9, 4}}),
            "candidate_logits.scale: must be finite and positive, got 0");
}

}  // namespace
}  // namespace satrap
