#include "embedding_ps/optimizer/adagrad.h"

#include "embedding_ps/optimizer/testing/reference_check.h"

namespace satrap {
namespace {

SparseOptimizerConfig Config(float initial_accumulator) {
  SparseOptimizerConfig config;
  config.mutable_adagrad()->set_initial_accumulator(initial_accumulator);
  return config;
}

TEST(AdagradTest, FollowsTheScalarReference) {
  for (const float initial : {0.0f, 0.1f}) {
    ExpectFollowsReference(*OptimizerOf(Config(initial)), 19,
                           [](double lr, const std::vector<double>& g, std::vector<double>& w,
                              std::vector<double>& a) {
                             for (size_t i = 0; i < w.size(); ++i) {
                               a[i] += g[i] * g[i];
                               w[i] -= lr * g[i] / (std::sqrt(a[i]) + 1e-10);
                             }
                           });
  }
}

TEST(AdagradTest, FirstStepFromZeroAccumulatorHasTheLengthOfTheLearningRate) {
  float value = 1, state = 0;
  StepContext context;
  context.learning_rate = 0.5f;
  OptimizerOf(Config(0))->Step(context, {-3.0f}, absl::MakeSpan(&value, 1),
                               absl::MakeSpan(&state, 1));
  EXPECT_FLOAT_EQ(value, 1.5f);
  EXPECT_FLOAT_EQ(state, 9.0f);
}

TEST(AdagradTest, StateBeginsAtTheInitialAccumulator) {
  std::vector<float> state(5);
  OptimizerOf(Config(0.25f))->InitState(absl::MakeSpan(state));
  EXPECT_EQ(state, std::vector<float>(5, 0.25f));
}

TEST(AdagradTest, RefusesConstantsOutOfRange) {
  EXPECT_EQ(NewSparseOptimizer(Config(-1)).status().message(),
            "adagrad.initial_accumulator: must be finite and not negative, got -1");
  SparseOptimizerConfig config;
  config.mutable_adagrad()->set_epsilon(0);
  EXPECT_FALSE(NewSparseOptimizer(config).ok());
}

}  // namespace
}  // namespace satrap
