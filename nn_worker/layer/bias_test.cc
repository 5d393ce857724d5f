#include "nn_worker/layer/bias.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class BiasLayerTest : public testing::Test {
 protected:
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples) {
    return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(BiasLayerTest, GradientsAreThoseOfItsForward) {
  LayerTester tester = Tester("bias {}", {{3}}, 6);
  EXPECT_LT(tester.LargestGradientError(), 1e-3);
}

}  // namespace
}  // namespace satrap
