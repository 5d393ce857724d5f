#include "nn_worker/layer/fm.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class FmLayerTest : public testing::Test {
 protected:
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples) {
    return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(FmLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("fm {}", {{4}, {4}, {4}}, 6);
  EXPECT_LT(tester.LargestGradientError(), 1e-3);
}

TEST_F(FmLayerTest, RefusesUnequalDims) {
  auto layer = NewFmLayer();
  EXPECT_EQ((*layer)->Infer({{4}, {5}}).status().message(),
            "takes inputs of one shape, input 0 is [4], input 1 is [5]");
}

}  // namespace
}  // namespace satrap
