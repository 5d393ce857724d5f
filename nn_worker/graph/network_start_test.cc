// Tests which values a Network takes from another run's model, and that the network's own cuts keep
// these values.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"

namespace satrap {
namespace {

constexpr char kDeep[] = R"(
  layers { name: "deep" inputs: "*.embedding" inputs: "numeric"
           mlp { units: 9 output_units: 1 } }
  layers { name: "numeric_linear" inputs: "numeric" linear { units: 1 } }
  layers { name: "logit" inputs: "deep" inputs: "numeric_linear" add {} })";
constexpr char kDeepWithBatchNorm[] = R"(
  layers { name: "deep" inputs: "*.embedding" inputs: "numeric"
           mlp { units: 9 batch_norm {} output_units: 1 } }
  layers { name: "logit" inputs: "deep" add {} })";

// A network with Adam and one rank.
struct AdamRank {
  explicit AdamRank(const std::string& model = kDeep) {
    NetworkOptions options;
    CHECK(google::protobuf::TextFormat::ParseFromString(model, &options.model)) << model;
    options.inputs.numeric_width = 3;
    options.inputs.segments = {{"user", "embedding", 4, 0}};
    options.optimizer.set_learning_rate(0.1f);
    options.optimizer.mutable_adam();
    options.max_samples = 8;
    options.backend = backend.get();
    options.collective = collectives[0].get();
    auto created = Network::Create(options);
    CHECK_OK(created.status());
    network = *std::move(created);
  }
  // Takes a step with gradients of 1 everywhere.
  void Step(int64_t step) {
    backend->Fill(network->gradients(), 1);
    CHECK_OK(network->Step({step}, {1, 1, 0}));
  }
  // Leaves out the gaps between the weights, because Step gives gradients to the gaps, too.
  std::vector<float> Weights() {
    std::vector<float> weights;
    for (const std::string& name : network->parameter_names()) {
      const std::vector<float> values = network->Parameter(name)->values;
      weights.insert(weights.end(), values.begin(), values.end());
    }
    return weights;
  }

  const std::unique_ptr<Backend> backend = NewCpuBackend(1);
  std::vector<std::unique_ptr<Collective>> collectives = NewLocalCollectives(1);
  std::unique_ptr<Network> network;
};

TEST(NetworkStartTest, ARunThatTakesTheOptimizersStateGoesOnAsALongerOne) {
  AdamRank longer, second;
  for (int64_t step = 0; step < 5; ++step) longer.Step(step);
  const auto taken = second.network->StartFrom(longer.network->Save(), WarmStartConfig(), 5);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->has_state);
  EXPECT_EQ(taken->taken, second.network->value_names());
  longer.Step(5);
  second.Step(0);
  EXPECT_EQ(second.Weights(), longer.Weights());
  // `third` is a new network, and `resumed` continues from a cut of the second network.
  AdamRank third, resumed;
  ASSERT_TRUE(third.network->StartFrom(second.network->Save(), WarmStartConfig(), 1).ok());
  ASSERT_TRUE(resumed.network->Load(second.network->Save(), Network::LoadScope::kAll).ok());
  EXPECT_EQ(resumed.network->Save(), second.network->Save());
  longer.Step(6);
  third.Step(0);
  resumed.Step(1);
  EXPECT_EQ(third.Weights(), longer.Weights());
  EXPECT_EQ(resumed.Weights(), longer.Weights());
}

TEST(NetworkStartTest, WithoutTheStateTheRateWarmsUpAlsoAfterACut) {
  AdamRank model, warm, fresh;
  for (int64_t step = 0; step < 5; ++step) model.Step(step);
  WarmStartConfig config;
  config.set_optimizer_state(false);
  config.set_warmup_steps(4);
  ASSERT_TRUE(warm.network->StartFrom(model.network->Save(), config, 5).ok());
  ASSERT_TRUE(fresh.network->Load(model.network->Save(), Network::LoadScope::kModel).ok());
  const float before = warm.network->Parameter("deep/linear_0.weight")->values[0];
  warm.Step(0);
  fresh.Step(0);
  const auto moved = [&](AdamRank* rank) {
    return before - rank->network->Parameter("deep/linear_0.weight")->values[0];
  };
  EXPECT_NEAR(moved(&warm), moved(&fresh) / 4, 1e-4);
  AdamRank resumed;
  ASSERT_TRUE(resumed.network->Load(warm.network->Save(), Network::LoadScope::kAll).ok());
  warm.Step(1);
  resumed.Step(1);
  EXPECT_EQ(resumed.Weights(), warm.Weights());
  EXPECT_NEAR(moved(&warm), moved(&fresh) * 3 / 4, 1e-4) << "a quarter and a half of a step";
}

TEST(NetworkStartTest, ARunOfItsOwnSavesNothingOfAWarmStart) {
  AdamRank rank;
  rank.Step(0);
  EXPECT_EQ(rank.network->Save().find(kDenseStartName), std::string::npos);
}

TEST(NetworkStartTest, AWarmStartOfOtherShapesChangesNothing) {
  AdamRank model(kDeepWithBatchNorm), other;
  model.Step(0);
  WarmStartConfig config;
  config.add_only("deep/*");
  const auto taken = other.network->StartFrom(model.network->Save(), config, 5);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_FALSE(taken->has_state);
  EXPECT_EQ(other.network->Parameter("deep/linear_0.weight")->values,
            model.network->Parameter("deep/linear_0.weight")->values);
  EXPECT_FALSE(taken->ignored.empty()) << "batch norm";
  std::vector<NamedArray> arrays = *DecodeArrays(model.network->Save());
  for (NamedArray& array : arrays) std::swap(array.rows, array.cols);
  AdamRank untouched;
  const std::vector<float> before = untouched.Weights();
  EXPECT_EQ(untouched.network->StartFrom(EncodeArrays(arrays), config, 5).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(untouched.Weights(), before);
}

}  // namespace
}  // namespace satrap
