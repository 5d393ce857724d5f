#include "embedding_ps/optimizer/nesterov.h"

#include "embedding_ps/optimizer/testing/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config(float mu) {
  SparseOptimizerConfig config;
  config.mutable_nesterov()->set_mu(mu);
  return config;
}

TEST(NesterovTest, FollowsTheScalarReference) {
  ExpectFollowsReference(*OptimizerOf(Config(0.9f)), 19,
                         [](double lr, const Doubles& g, Doubles& w, Doubles& m) {
                           for (size_t i = 0; i < w.size(); ++i) {
                             const double before = m[i];
                             m[i] = 0.9f * before - lr * g[i];
                             w[i] += -0.9f * before + (1 + 0.9f) * m[i];
                           }
                         });
}

TEST(NesterovTest, LooksAheadByTheMomentumOfTheStep) {
  const auto optimizer = OptimizerOf(Config(0.5f));
  float value = 8;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 0, 1, 2, &value, &state);
  EXPECT_EQ(value, 5) << "m = -2, and 1.5 m";
  StepOne(*optimizer, 1, 1, 0, &value, &state);
  EXPECT_EQ(value, 4.5f) << "m = -1: - 1.5 + 1";
}

}  // namespace
}  // namespace satrap
