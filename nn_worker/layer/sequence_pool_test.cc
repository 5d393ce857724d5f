#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class SequencePoolLayerTest : public LayerTest {
 protected:
  // Sequences of up to `length` positions. Sample i has i % (length + 1) of them.
  LayerTester Tester(const std::string& kind, int64_t length, int64_t dim, int64_t samples) {
    LayerTester tester =
        LayerTest::Tester("sequence_pool { " + kind + " }", {{length, dim}, {1}}, samples);
    for (int64_t i = 0; i < samples; ++i) {
      tester.Set(tester.inputs()[1], i, 0, static_cast<float>(i % (length + 1)));
    }
    return tester;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryBackend, SequencePoolLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(SequencePoolLayerTest, GradientsAreThoseOfItsForward) {
  for (const char* kind : {"kind: MEAN", "kind: SUM", "kind: MAX"}) {
    LayerTester tester = Tester(kind, 3, 4, 9);
    EXPECT_LT(tester.LargestGradientError(), 1e-4) << kind;
    EXPECT_EQ(tester.outputs()[0].cols, 4);
  }
}

TEST_P(SequencePoolLayerTest, TheMeanIsOfThePositionsBeforeTheEnd) {
  LayerTester tester = Tester("", 2, 1, 3);
  for (int64_t i = 0; i < 3; ++i) {
    tester.Set(tester.inputs()[0], i, 0, 3);
    tester.Set(tester.inputs()[0], i, 1, 5);
  }
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(tester.Get(tester.outputs()[0]), 0);
  EXPECT_EQ(tester.Get(tester.outputs()[0], 1), 3);
  EXPECT_EQ(tester.Get(tester.outputs()[0], 2), 4);
}

TEST_P(SequencePoolLayerTest, RefusesWhatIsNoSequenceWithItsLength) {
  const auto layer = NewSequencePoolLayer(SequencePoolConfig());
  ASSERT_TRUE(layer.ok());
  EXPECT_EQ((*layer)->Infer(std::vector<SampleShape>{{50, 16}}).status().message(),
            "takes a sequence [length, dim] and its length [1], got [50, 16]");
  EXPECT_FALSE((*layer)->Infer(std::vector<SampleShape>{{16}, {1}}).ok());
  EXPECT_FALSE((*layer)->Infer(std::vector<SampleShape>{{50, 16}, {50, 16}}).ok());
  EXPECT_TRUE((*layer)->Infer(std::vector<SampleShape>{{50, 16}, {1}}).ok());
}

}  // namespace
}  // namespace satrap
