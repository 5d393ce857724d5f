#include "nn_worker/layer/sequence_pool.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class SequencePoolLayerTest : public testing::Test {
 protected:
  // Sequences of up to `length` positions, sample i of i % (length + 1).
  LayerTester Tester(const std::string& kind, int64_t length, int64_t dim, int64_t samples) {
    LayerTester tester(backend_.get(), collectives_[0].get(), "sequence_pool { " + kind + " }",
                       {{length, dim}, {1}}, samples);
    for (int64_t i = 0; i < samples; ++i) {
      *tester.inputs()[1].f32(i) = static_cast<float>(i % (length + 1));
    }
    return tester;
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(SequencePoolLayerTest, GradientsAreThoseOfItsForward) {
  for (const char* kind : {"kind: MEAN", "kind: SUM", "kind: MAX"}) {
    LayerTester tester = Tester(kind, 3, 4, 9);
    EXPECT_LT(tester.LargestGradientError(), 1e-4) << kind;
    EXPECT_EQ(tester.outputs()[0].cols, 4);
  }
}

TEST_F(SequencePoolLayerTest, TheMeanIsOfThePositionsBeforeTheEnd) {
  LayerTester tester = Tester("", 2, 1, 3);
  for (int64_t i = 0; i < 3; ++i) {
    tester.inputs()[0].f32(i)[0] = 3;
    tester.inputs()[0].f32(i)[1] = 5;
  }
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(*tester.outputs()[0].f32(0), 0);
  EXPECT_EQ(*tester.outputs()[0].f32(1), 3);
  EXPECT_EQ(*tester.outputs()[0].f32(2), 4);
}

TEST_F(SequencePoolLayerTest, RefusesWhatIsNoSequenceWithItsLength) {
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
