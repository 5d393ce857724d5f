#include "nn_worker/layer/concat.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class ConcatLayerTest : public testing::Test {
 protected:
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples) {
    return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(ConcatLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("concat {}", {{2}, {0}, {3}}, 5);
  EXPECT_LT(tester.LargestGradientError(), 1e-4);
  EXPECT_EQ(tester.outputs()[0].cols, 5);
  EXPECT_EQ(tester.outputs()[0].f32(4)[2], tester.inputs()[2].f32(4)[0]);
}

TEST_F(ConcatLayerTest, RefusesSequences) {
  auto layer = NewConcatLayer();
  EXPECT_EQ((*layer)->Infer({{4}, {5, 2}}).status().message(),
            "takes inputs of shape [dim], input 1 is [5, 2]");
}

}  // namespace
}  // namespace satrap
