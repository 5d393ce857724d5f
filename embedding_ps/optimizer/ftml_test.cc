#include "embedding_ps/optimizer/ftml.h"

#include "embedding_ps/optimizer/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config() {
  SparseOptimizerConfig config;
  config.mutable_ftml();
  return config;
}

// The reference is the algorithm as the paper gives it, with z and d, which the optimizer does not
// keep.
TEST(FtmlTest, FollowsTheAlgorithm) {
  constexpr double kBeta1 = 0.6f, kBeta2 = 0.999f;
  constexpr int kDim = 19;
  int t = 0;
  Doubles z(kDim), d(kDim);
  ExpectFollowsReference(
      *OptimizerOf(Config()), kDim, [&](double lr, const Doubles& g, Doubles& w, Doubles& v) {
        ++t;
        for (int i = 0; i < kDim; ++i) {
          v[i] = kBeta2 * v[i] + (1 - kBeta2) * g[i] * g[i];
          const double d_before = d[i];
          d[i] =
              (1 - std::pow(kBeta1, t)) / lr * (std::sqrt(v[i] / (1 - std::pow(kBeta2, t))) + 1e-8);
          z[i] = kBeta1 * z[i] + (1 - kBeta1) * g[i] - (d[i] - kBeta1 * d_before) * w[i];
          w[i] = -z[i] / d[i];
        }
      });
}

TEST(FtmlTest, TheFirstStepHasTheLengthOfTheLearningRate) {
  const auto optimizer = OptimizerOf(Config());
  float value = 1;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 0, 0.25f, -3, &value, &state);
  EXPECT_FLOAT_EQ(value, 1.25f);
}

}  // namespace
}  // namespace satrap
