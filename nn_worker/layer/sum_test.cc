#include "nn_worker/layer/sum.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class SumLayerTest : public testing::Test {
 protected:
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples) {
    return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(SumLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("sum {}", {{1}, {3}, {2}}, 6);
  EXPECT_LT(tester.LargestGradientError(), 1e-4);
  EXPECT_EQ(tester.outputs()[0].cols, 1);
}

}  // namespace
}  // namespace satrap
