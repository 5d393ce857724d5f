#include "embedding_ps/optimizer/adadelta.h"

#include "embedding_ps/optimizer/testing/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config() {
  SparseOptimizerConfig config;
  config.mutable_adadelta();
  return config;
}

TEST(AdadeltaTest, FollowsTheScalarReference) {
  constexpr double kRho = 0.95f, kEpsilon = 1e-6f;
  ExpectFollowsReference(
      *OptimizerOf(Config()), 19,
      [](double lr, const Doubles& g, Doubles& w, Doubles& state) {
        const size_t n = w.size();
        for (size_t i = 0; i < n; ++i) {
          double& a = state[i];
          double& u = state[n + i];
          a = kRho * a + (1 - kRho) * g[i] * g[i];
          const double d = g[i] * std::sqrt(u + kEpsilon) / std::sqrt(a + kEpsilon);
          u = kRho * u + (1 - kRho) * d * d;
          w[i] -= lr * d;
        }
      },
      /*constant_rate=*/1.0f);
}

TEST(AdadeltaTest, TheFirstStepDoesNotDependOnTheSizeOfTheGradient) {
  const auto optimizer = OptimizerOf(Config());
  for (const float gradient : {1.0f, 100.0f}) {
    float value = 0;
    std::vector<float> state = NewState(*optimizer);
    StepOne(*optimizer, 0, 1, gradient, &value, &state);
    EXPECT_NEAR(value, -std::sqrt(1e-6 / 0.05), 1e-6) << gradient;
  }
}

}  // namespace
}  // namespace satrap
