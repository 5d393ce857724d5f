#include "nn_worker/layer/add.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class AddLayerTest : public testing::Test {
 protected:
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples) {
    return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(AddLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("add {}", {{2, 2}, {2, 2}, {2, 2}}, 5);
  EXPECT_LT(tester.LargestGradientError(), 1e-4);
}

TEST_F(AddLayerTest, RefusesUnequalShapes) {
  auto layer = NewAddLayer();
  EXPECT_EQ((*layer)->Infer({{4}, {5}}).status().message(),
            "takes inputs of one shape, input 0 is [4], input 1 is [5]");
  EXPECT_EQ((*layer)->Infer({}).status().message(), "takes at least one input, got none");
}

}  // namespace
}  // namespace satrap
