#include "embedding_ps/optimizer/decayed_adagrad.h"

#include "embedding_ps/optimizer/testing/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config() {
  SparseOptimizerConfig config;
  config.mutable_decayed_adagrad()->set_decay(0.75f);
  config.mutable_decayed_adagrad()->set_initial_accumulator(0.25f);
  return config;
}

TEST(DecayedAdagradTest, FollowsTheScalarReference) {
  ExpectFollowsReference(*OptimizerOf(Config()), 19,
                         [](double lr, const Doubles& g, Doubles& w, Doubles& a) {
                           for (size_t i = 0; i < w.size(); ++i) {
                             a[i] = 0.75 * a[i] + g[i] * g[i];
                             w[i] -= lr * g[i] / (std::sqrt(a[i]) + 1e-10);
                           }
                         });
}

TEST(DecayedAdagradTest, ForgetsTheSquaresOfBefore) {
  const auto optimizer = OptimizerOf(Config());
  float value = 1;
  std::vector<float> state = NewState(*optimizer);
  EXPECT_EQ(state, std::vector<float>{0.25f});
  StepOne(*optimizer, 0, 1, 0, &value, &state);
  StepOne(*optimizer, 1, 1, 0, &value, &state);
  EXPECT_EQ(state, std::vector<float>{0.140625f});
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace satrap
