#include "embedding_ps/optimizer/adam.h"

#include "embedding_ps/optimizer/reference_check.h"

namespace satrap {
namespace {

SparseOptimizerConfig Config() {
  SparseOptimizerConfig config;
  config.mutable_adam();
  return config;
}

TEST(AdamTest, FollowsTheScalarReference) {
  int t = 0;
  ExpectFollowsReference(*OptimizerOf(Config()), 19,
                         [&t](double lr, const std::vector<double>& g, std::vector<double>& w,
                              std::vector<double>& state) {
                           ++t;
                           const size_t n = w.size();
                           for (size_t i = 0; i < n; ++i) {
                             double& m = state[i];
                             double& v = state[n + i];
                             m = 0.9 * m + 0.1 * g[i];
                             v = 0.999 * v + 0.001 * g[i] * g[i];
                             const double m_hat = m / (1 - std::pow(0.9, t));
                             const double v_hat = v / (1 - std::pow(0.999, t));
                             w[i] -= lr * m_hat / (std::sqrt(v_hat) + 1e-8);
                           }
                         });
}

// Guards against a typical error: a running power that starts at beta and is multiplied by beta
// before use would give beta^2 in the first step.
TEST(AdamTest, FirstStepOfARowHasTheLengthOfTheLearningRateWheneverItIsBorn) {
  for (const int64_t step : {0, 1000000}) {
    float value = 0;
    std::vector<float> state(3);
    const auto adam = OptimizerOf(Config());
    adam->InitState(absl::MakeSpan(state));
    StepContext context;
    context.step = step;
    context.learning_rate = 0.25f;
    adam->Step(context, {2.0f}, absl::MakeSpan(&value, 1), absl::MakeSpan(state));
    EXPECT_NEAR(value, -0.25f, 1e-5);
    EXPECT_EQ(state[2], 1);
  }
}

TEST(AdamTest, RefusesConstantsOutOfRange) {
  SparseOptimizerConfig config = Config();
  config.mutable_adam()->set_beta2(1);
  EXPECT_EQ(NewSparseOptimizer(config).status().message(), "adam.beta2: must be in [0, 1), got 1");
}

}  // namespace
}  // namespace satrap
