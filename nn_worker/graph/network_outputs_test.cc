// Tests networks that only compute some values of a model (NetworkOptions.outputs).

#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 20;

constexpr char kModel[] = R"(
  layers { name: "user_vector" inputs: [ "user.embedding", "numeric" ] mlp { units: 8 batch_norm {} output_units: 3 } }
  layers { name: "item_vector" inputs: "item.embedding" mlp { units: 8 output_units: 3 } }
  layers { name: "product" inputs: [ "user_vector", "item_vector" ] inner_product {} }
  layers { name: "kind" inputs: [ "user_vector", "item_vector" ] mlp { output_units: 2 } }
  tasks { name: "click" output: "product" }
  tasks { name: "kind" output: "kind" loss: SOFTMAX_CROSS_ENTROPY })";

class NetworkOutputsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Network>> Create(const std::vector<std::string>& outputs,
                                                  uint64_t seed = 1, DType dtype = DType::kF32,
                                                  bool trains = true) {
    NetworkOptions options;
    CHECK(google::protobuf::TextFormat::ParseFromString(kModel, &options.model));
    options.inputs.numeric_width = 2;
    options.inputs.segments = {{"user", "embedding", 4, 0}, {"item", "embedding", 4, 0}};
    options.seed = seed;
    options.max_samples = kSamples;
    options.dtype = dtype;
    options.backend = backend_.get();
    options.collective = collectives_[0].get();
    options.outputs = outputs;
    options.trains = trains;
    return Network::Create(options);
  }

  // Writes the same values to the inputs of every network, and computes an evaluation.
  void Forward(Network* network) {
    for (int input = 0; input < network->num_inputs(); ++input) {
      const Tensor view = network->input_view(input);
      if (!view.empty()) CopyIn(backend_.get(), InputValues(input, view.cols), view);
    }
    ASSERT_TRUE(network->Forward(kSamples, PassContext::Evaluation()).ok());
  }
  static std::vector<float> InputValues(int input, int64_t cols) {
    SplitMix64 random(static_cast<uint64_t>(input));
    std::vector<float> values(kSamples * cols);
    for (float& value : values) value = static_cast<float>(random.NextDouble() - .5);
    return values;
  }

  const std::unique_ptr<Backend> backend_ = NewCpuHalfBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

// A run that only scores has no memory for gradients and the optimizer, but computes the same bits.
TEST_F(NetworkOutputsTest, ANetworkThatIsNotTrainedComputesTheSame) {
  const auto trained = Create({});
  const auto scoring = Create({}, /*seed=*/2, DType::kF32, /*trains=*/false);
  ASSERT_TRUE(trained.ok() && scoring.ok()) << trained.status() << scoring.status();
  EXPECT_TRUE((*scoring)->gradients().empty());
  for (int input = 0; input < (*scoring)->num_inputs(); ++input) {
    EXPECT_TRUE((*scoring)->input_gradient(input).empty()) << input;
  }
  ASSERT_TRUE((*scoring)->Load((*trained)->Save(), Network::LoadScope::kModel).ok());
  Forward(trained->get());
  Forward(scoring->get());
  for (int task = 0; task < (*trained)->num_tasks(); ++task) {
    EXPECT_EQ((*scoring)->ReadLogits(task), (*trained)->ReadLogits(task)) << task;
  }
}

TEST_F(NetworkOutputsTest, AreTheValuesThatTheWholeNetworkComputes) {
  const auto whole = Create({});
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto outputs = Create({"kind", "item.embedding", "product"}, /*seed=*/2);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_TRUE((*outputs)->Load((*whole)->Save(), Network::LoadScope::kModel).ok());
  ASSERT_EQ((*outputs)->num_tasks(), 3);
  EXPECT_EQ((*outputs)->num_outputs(0), 2);
  EXPECT_EQ((*outputs)->num_outputs(1), 4);
  EXPECT_EQ((*outputs)->num_outputs(2), 1);
  Forward(whole->get());
  Forward(outputs->get());
  EXPECT_EQ((*outputs)->ReadLogits(0), (*whole)->ReadLogits(1));
  EXPECT_EQ((*outputs)->ReadLogits(1), InputValues(/*input=*/2, 4));
  EXPECT_EQ((*outputs)->ReadLogits(2), (*whole)->ReadLogits(0));
}

TEST_F(NetworkOutputsTest, OfATowerNeedTheTowerAlone) {
  const auto whole = Create({});
  const auto tower = Create({"item_vector"}, /*seed=*/2);
  ASSERT_TRUE(whole.ok() && tower.ok()) << tower.status();
  EXPECT_EQ((*tower)->num_parameters(), 4 * 8 + 8 + 8 * 3 + 3);
  EXPECT_TRUE((*tower)->input_view(0).empty()) << "numeric";
  EXPECT_TRUE((*tower)->input_view(1).empty()) << "user.embedding";
  EXPECT_FALSE((*tower)->input_view(2).empty()) << "item.embedding";
  ASSERT_TRUE((*tower)->Load((*whole)->Save(), Network::LoadScope::kModel).ok());
  EXPECT_EQ((*tower)->Parameter("item_vector/output.weight")->values,
            (*whole)->Parameter("item_vector/output.weight")->values);
  // A model that lacks values which the tower needs does not fit.
  EXPECT_EQ((*whole)->Load((*tower)->Save(), Network::LoadScope::kModel).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(NetworkOutputsTest, AreF32AlsoOfLayersThatComputeIn16Bits) {
  const auto exact = Create({"user_vector", "item_vector"});
  const auto rounded = Create({"user_vector", "item_vector"}, /*seed=*/1, DType::kBF16);
  ASSERT_TRUE(exact.ok() && rounded.ok()) << rounded.status();
  for (const auto* network : {&exact, &rounded}) {
    for (int input = 0; input < (**network)->num_inputs(); ++input) {
      const Tensor view = (**network)->input_view(input);
      const std::vector<float> values = InputValues(input, view.cols);
      std::vector<uint16_t> halves;
      for (const float value : values) halves.push_back(Bf16FromF32(value));
      if (view.dtype == DType::kF32) CopyIn(backend_.get(), values, view);
      if (view.dtype == DType::kBF16) CopyIn(backend_.get(), halves, view);
    }
    ASSERT_TRUE((**network)->Forward(kSamples, PassContext::Evaluation()).ok());
  }
  for (const int output : {0, 1}) {
    const std::vector<float> expected = (*exact)->ReadLogits(output);
    const std::vector<float> values = (*rounded)->ReadLogits(output);
    ASSERT_EQ(values.size(), expected.size());
    EXPECT_NE(values, expected);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], .02);
  }
}

TEST_F(NetworkOutputsTest, MustBeOfTheModel) {
  const auto network = Create({"item_vektor"});
  EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap
