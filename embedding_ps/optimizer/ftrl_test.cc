#include "embedding_ps/optimizer/ftrl.h"

#include "embedding_ps/optimizer/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config(float lambda1, float lambda2, float initial_accumulator) {
  SparseOptimizerConfig config;
  OptimizerConfig::Ftrl* ftrl = config.mutable_ftrl();
  ftrl->set_beta(0.5f);
  ftrl->set_lambda1(lambda1);
  ftrl->set_lambda2(lambda2);
  ftrl->set_initial_accumulator(initial_accumulator);
  return config;
}

// The reference is Algorithm 1 as the paper gives it, started with the z that belongs to the
// initial values. It keeps its own z, because the optimizer's state has z only where w is 0.
TEST(FtrlTest, FollowsTheAlgorithmFromRandomInitialValues) {
  constexpr double kAlpha = 0.0625, kBeta = 0.5;
  for (const float lambda1 : {0.0f, 0.25f, 4.0f}) {
    for (const float n0 : {0.0f, 0.125f}) {
      constexpr double kLambda2 = 0.75;
      std::vector<double> z;
      ExpectFollowsReference(
          *OptimizerOf(Config(lambda1, kLambda2, n0)), 19,
          [&](double, const Doubles& g, Doubles& w, Doubles& state) {
            const size_t dim = w.size();
            if (z.empty()) {
              for (const double x : w) {
                z.push_back(-x * (kBeta / kAlpha + kLambda2 + std::sqrt(n0) / kAlpha) -
                            std::copysign(lambda1, x));
              }
            }
            for (size_t i = 0; i < dim; ++i) {
              double& n = state[dim + i];
              const double sigma = (std::sqrt(n + g[i] * g[i]) - std::sqrt(n)) / kAlpha;
              z[i] += g[i] - sigma * w[i];
              n += g[i] * g[i];
              w[i] = std::abs(z[i]) <= lambda1 ? 0
                                               : -(z[i] - std::copysign(lambda1, z[i])) /
                                                     ((kBeta + std::sqrt(n)) / kAlpha + kLambda2);
            }
          },
          static_cast<float>(kAlpha));
    }
  }
}

TEST(FtrlTest, ARandomInitialValueSurvivesTheFirstTouch) {
  const auto optimizer = OptimizerOf(Config(0, 0, 0.1f));
  float value = 0.25f;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 0, 0.05f, 1e-4f, &value, &state);
  EXPECT_NEAR(value, 0.25, 1e-4);
}

TEST(FtrlTest, AWeightUnderLambda1BecomesZeroAndComesBack) {
  const auto optimizer = OptimizerOf(Config(1, 0, 0));
  float value = 0;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 0, 0.5f, 0.75f, &value, &state);
  EXPECT_EQ(value, 0) << "z = .75";
  StepOne(*optimizer, 1, 0.5f, 1, &value, &state);
  EXPECT_FLOAT_EQ(value, -0.75f / ((0.5f + 1.25f) / 0.5f)) << "z = 1.75, n = 1.5625";
}

TEST(FtrlTest, AChangeOfTheRateAloneMovesNothing) {
  const auto optimizer = OptimizerOf(Config(0.5f, 0.25f, 0));
  float value = 0.5f;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 0, 0.5f, 1, &value, &state);
  const float before = value;
  for (const float rate : {0.05f, 0.0f}) StepOne(*optimizer, 1, rate, 0, &value, &state);
  EXPECT_EQ(value, before);
}

}  // namespace
}  // namespace satrap
