#include "embedding_ps/optimizer/amsgrad.h"

#include "embedding_ps/optimizer/testing/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config() {
  SparseOptimizerConfig config;
  config.mutable_amsgrad()->set_beta2(0.875f);
  return config;
}

TEST(AmsgradTest, FollowsTheScalarReference) {
  int t = 0;
  ExpectFollowsReference(*OptimizerOf(Config()), 19,
                         [&t](double lr, const Doubles& g, Doubles& w, Doubles& state) {
                           ++t;
                           constexpr double kBeta1 = 0.9f, kBeta2 = 0.875;
                           const size_t n = w.size();
                           for (size_t i = 0; i < n; ++i) {
                             double& m = state[i];
                             double& v = state[n + i];
                             double& x = state[2 * n + i];
                             m = kBeta1 * m + (1 - kBeta1) * g[i];
                             v = kBeta2 * v + (1 - kBeta2) * g[i] * g[i];
                             x = std::max(x, v);
                             w[i] -= lr * (m / (1 - std::pow(kBeta1, t))) /
                                     (std::sqrt(x / (1 - std::pow(kBeta2, t))) + 1e-8);
                           }
                         });
}

TEST(AmsgradTest, TheLargestMomentIsTakenBeforeTheBiasCorrection) {
  const auto optimizer = OptimizerOf(Config());
  float value = 0;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 0, 1, 8, &value, &state);
  EXPECT_FLOAT_EQ(state[2], 8) << "64 / 8, not 64";
  StepOne(*optimizer, 1, 1, 0, &value, &state);
  EXPECT_FLOAT_EQ(state[1], 7);
  EXPECT_FLOAT_EQ(state[2], 8) << "does not fall";
}

}  // namespace
}  // namespace satrap
