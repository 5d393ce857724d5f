#include "nn_worker/graph/network_training.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/model/graph_builder.h"
#include "nn_worker/optimizer/dense_optimizer_factory.h"

namespace satrap {
namespace {

// The training of a layer with three weights and a bias, on one rank.
class NetworkTrainingTest : public ::testing::Test {
 protected:
  absl::Status Allocate(const std::string& optimizer, const GradientScale& scale = {}) {
    ModelConfig model;
    CHECK(google::protobuf::TextFormat::ParseFromString(
        R"(layers { name: "logit" inputs: "numeric" linear { units: 1 } })", &model));
    CHECK(google::protobuf::TextFormat::ParseFromString(optimizer, &options_.optimizer));
    options_.backend = backend_.get();
    options_.collective = collectives_[0].get();
    options_.gradient_scale = scale;
    GraphInputs inputs;
    inputs.numeric_width = 3;
    const auto graph = BuildGraph(model, inputs);
    CHECK_OK(graph.status());
    CHECK_OK(values_.Allocate(*graph, options_));
    training_ = std::make_unique<NetworkTraining>(
        options_, NewDenseOptimizer(options_.optimizer).value(), &values_);
    return training_->Allocate();
  }
  // Creates the training with its initial state, and with parameters and gradients of 0.
  void Create(const std::string& optimizer, const GradientScale& scale = {}) {
    CHECK_OK(Allocate(optimizer, scale));
    training_->SetInitialState();
    backend_->Fill(values_.parameters, 0);
    backend_->Fill(training_->gradients(), 0);
  }
  Tensor Weights(const Tensor& of) { return ViewOf(values_.parameter_layout.arrays[0], of); }
  float Weight() { return ReadFloats(backend_.get(), Weights(values_.parameters))[0]; }
  void FillWeights(float value) { backend_->Fill(Weights(values_.parameters), value); }
  void FillGradients(float value) { backend_->Fill(Weights(training_->gradients()), value); }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
  NetworkOptions options_;
  NetworkValues values_;
  std::unique_ptr<NetworkTraining> training_;
};

constexpr char kSgd[] = "learning_rate: 0.5 sgd {}";

DenseStep StepOf(int64_t global_batch_size) {
  DenseStep step;
  step.global_batch_size = global_batch_size;
  return step;
}

TEST_F(NetworkTrainingTest, AStepDividesTheSumOfGradientsByTheWeightOfItsSamples) {
  Create(kSgd);
  FillGradients(8);
  ASSERT_TRUE(training_->StartReduce().ok());
  ASSERT_TRUE(training_->FinishReduce().ok());
  training_->Step(StepOf(4), {/*samples=*/4, /*weight=*/2, /*not_finite=*/0}, /*clip_factor=*/1);
  EXPECT_EQ(Weight(), -.5f * 8 / 2);
}

// If a step has half a full batch, it moves the weights half as far as the mean gradient over its
// samples would.
TEST_F(NetworkTrainingTest, ASmallerBatchMovesTheWeightsLess) {
  Create(kSgd);
  FillGradients(8);
  training_->Step(StepOf(4), {/*samples=*/2, /*weight=*/2, /*not_finite=*/0}, /*clip_factor=*/1);
  EXPECT_EQ(Weight(), -.5f * 8 / 2 / 2);
}

TEST_F(NetworkTrainingTest, AStepWithoutWeightOrWithARankThatIsNotFiniteMovesNothing) {
  Create(kSgd);
  FillGradients(std::numeric_limits<float>::infinity());
  training_->Step(StepOf(4), {4, /*weight=*/0, 0}, 1);
  EXPECT_EQ(Weight(), 0);
  training_->Step(StepOf(4), {4, 4, /*not_finite=*/1}, 1);
  EXPECT_EQ(Weight(), 0);
}

TEST_F(NetworkTrainingTest, TheClipFactorMultipliesTheGradientWithItsL2) {
  Create("learning_rate: 0.5 l2: 0.25 sgd {}");
  FillWeights(8);
  FillGradients(2);
  training_->Step(StepOf(1), {1, 1, 0}, /*clip_factor=*/.5f);
  EXPECT_EQ(Weight(), 8 - .5f * .5f * (2 + .25f * 8));
}

TEST_F(NetworkTrainingTest, SquaresAreThoseOfTheGradientsThatTheStepTakes) {
  Create("l2: 0.25 sgd {}");
  FillWeights(8);
  FillGradients(6);
  // Each of the three weights has the gradient 6 / 2 + .25 * 8 = 5. The bias and its gradient are
  // 0.
  EXPECT_EQ(training_->GradientSquares(StepOf(2), {2, 2, 0}), 3 * 5 * 5);
}

TEST_F(NetworkTrainingTest, TheScaleOfGradientsIsTakenOutOfThemAndBacksOffAfterAnOverflow) {
  GradientScale scale;
  scale.scale = 16;
  scale.rule.growth_steps = 100;
  scale.rule.most = 64;
  Create(kSgd, scale);
  FillGradients(16 * 2);
  training_->Step(StepOf(1), {1, 1, 0}, 1);
  training_->EndStep();
  EXPECT_EQ(Weight(), -.5f * 2);
  EXPECT_EQ(training_->gradient_scale().scale, 16);
  EXPECT_EQ(training_->gradient_scale().clean_steps, 1u);
  training_->Step(StepOf(1), {1, 1, /*not_finite=*/1}, 1);
  training_->EndStep();
  EXPECT_EQ(training_->gradient_scale().scale, 8);
  EXPECT_EQ(training_->gradient_scale().clean_steps, 0u);
}

TEST_F(NetworkTrainingTest, StateArraysBeginAsTheOptimizerSaysAndAreKeptUnderItsNames) {
  Create("adagrad { initial_accumulator: 0.25 }");
  std::vector<KeptArray> kept;
  training_->AppendState(&kept);
  ASSERT_EQ(kept.size(), values_.parameter_layout.arrays.size());
  EXPECT_EQ(kept[0].name, values_.parameter_layout.arrays[0].name + "#adagrad.a");
  EXPECT_EQ(ReadFloats(backend_.get(), kept[0].values)[0], .25f);
}

TEST_F(NetworkTrainingTest, SettingsOfNoParameterAreRefused) {
  const absl::Status status = Allocate("sgd {} parameters { pattern: 'nothing*' l2: 1 }");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("nothing*"));
}

}  // namespace
}  // namespace satrap
