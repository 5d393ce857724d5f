#include "embedding_ps/optimizer/adamw.h"

#include "embedding_ps/optimizer/testing/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config(float weight_decay) {
  SparseOptimizerConfig config;
  config.mutable_adamw()->set_weight_decay(weight_decay);
  return config;
}

TEST(AdamwTest, FollowsTheScalarReference) {
  int t = 0;
  ExpectFollowsReference(*OptimizerOf(Config(0.125f)), 19,
                         [&t](double lr, const Doubles& g, Doubles& w, Doubles& state) {
                           ++t;
                           constexpr double kBeta1 = 0.9f, kBeta2 = 0.999f;
                           const size_t n = w.size();
                           for (size_t i = 0; i < n; ++i) {
                             double& m = state[i];
                             double& v = state[n + i];
                             m = kBeta1 * m + (1 - kBeta1) * g[i];
                             v = kBeta2 * v + (1 - kBeta2) * g[i] * g[i];
                             w[i] -= lr * ((m / (1 - std::pow(kBeta1, t))) /
                                               (std::sqrt(v / (1 - std::pow(kBeta2, t))) + 1e-8) +
                                           0.125 * w[i]);
                           }
                         });
}

TEST(AdamwTest, DecaysWithoutAGradient) {
  const auto optimizer = OptimizerOf(Config(0.5f));
  float value = 8;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 0, 0.25f, 0, &value, &state);
  EXPECT_EQ(value, 7);
}

}  // namespace
}  // namespace satrap
