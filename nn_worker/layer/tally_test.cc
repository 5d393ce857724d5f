#include "nn_worker/layer/tally.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class TallyLayerTest : public testing::Test {
 protected:
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples) {
    return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
  }
  // Every element of a tensor, in rows.
  static std::vector<float> Elements(const Tensor& tensor) {
    std::vector<float> elements;
    for (int64_t row = 0; row < tensor.rows; ++row) {
      for (int64_t col = 0; col < tensor.cols; ++col) {
        elements.push_back(tensor.f32()[row * tensor.stride + col]);
      }
    }
    return elements;
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(TallyLayerTest, GivesZerosWhateverItsInputs) {
  LayerTester tester = Tester("tally {}", {{1}, {2}}, 3);
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(Elements(tester.outputs()[0]), std::vector<float>(3, 0));
}

TEST_F(TallyLayerTest, GivesEachElementOfItsInputsTheConstantGradient) {
  LayerTester tester = Tester("tally { gradient: -2 }", {{1}, {2}}, 3);
  ASSERT_TRUE(tester.Forward().ok());
  ASSERT_TRUE(tester.Backward().ok());
  EXPECT_EQ(Elements(tester.input_gradients()[0]), std::vector<float>(3, -2));
  EXPECT_EQ(Elements(tester.input_gradients()[1]), std::vector<float>(6, -2));
}

}  // namespace
}  // namespace satrap
