#include "embedding_ps/optimizer/rmsprop.h"

#include "embedding_ps/optimizer/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config(bool in_root, float momentum, bool centred) {
  SparseOptimizerConfig config;
  OptimizerConfig::RmsProp* rmsprop = config.mutable_rmsprop();
  rmsprop->set_rho(0.875f);
  rmsprop->set_epsilon(0.015625f);
  rmsprop->set_epsilon_in_root(in_root);
  rmsprop->set_momentum(momentum);
  rmsprop->set_centred(centred);
  return config;
}

TEST(RmspropTest, FollowsTheScalarReferenceInAllItsForms) {
  for (const bool in_root : {false, true}) {
    for (const float momentum : {0.0f, 0.75f}) {
      for (const bool centred : {false, true}) {
        SCOPED_TRACE(testing::Message() << in_root << " " << momentum << " " << centred);
        ExpectFollowsReference(*OptimizerOf(Config(in_root, momentum, centred)), 19,
                               [=](double lr, const Doubles& g, Doubles& w, Doubles& state) {
                                 const size_t n = w.size();
                                 for (size_t i = 0; i < n; ++i) {
                                   double& a = state[i];
                                   a = 0.875 * a + 0.125 * g[i] * g[i];
                                   double mean_square = a;
                                   if (centred) {
                                     double& c = state[n + i];
                                     c = 0.875 * c + 0.125 * g[i];
                                     mean_square -= c * c;
                                   }
                                   const double e = 0.015625;
                                   const double divisor = in_root ? std::sqrt(mean_square + e)
                                                                  : std::sqrt(mean_square) + e;
                                   double step = lr * g[i] / divisor;
                                   if (momentum > 0) {
                                     double& m = state[(centred ? 2 : 1) * n + i];
                                     m = momentum * m + step;
                                     step = m;
                                   }
                                   w[i] -= step;
                                 }
                               });
      }
    }
  }
}

TEST(RmspropTest, KeepsOnlyTheStateOfItsForm) {
  EXPECT_EQ(OptimizerOf(Config(true, 0, false))->StateSize(16), 16);
  EXPECT_EQ(OptimizerOf(Config(true, 0.5f, false))->StateSize(16), 32);
  EXPECT_EQ(OptimizerOf(Config(true, 0, true))->StateSize(16), 32);
  EXPECT_EQ(OptimizerOf(Config(true, 0.5f, true))->StateSize(16), 48);
  EXPECT_TRUE(OptimizerOf(Config(true, 0, false))->IsElementwise());
  EXPECT_FALSE(OptimizerOf(Config(true, 0.5f, false))->IsElementwise());
}

// A row is stepped in blocks of values. Each block must use its own part of the state.
TEST(RmspropTest, AWideRowIsSteppedAsManyNarrowOnes) {
  const auto optimizer = OptimizerOf(Config(false, 0.5f, true));
  constexpr int kDim = 600;
  std::vector<float> gradient(kDim), values(kDim, 1), state(optimizer->StateSize(kDim));
  for (int i = 0; i < kDim; ++i) gradient[i] = 0.25f + 0.01f * static_cast<float>(i);
  StepContext context;
  context.learning_rate = 0.5f;
  for (int step = 0; step < 2; ++step) {
    optimizer->Step(context, gradient, absl::MakeSpan(values), absl::MakeSpan(state));
  }
  for (const int i : {0, 255, 256, 511, 512, 599}) {
    float value = 1;
    std::vector<float> alone = NewState(*optimizer);
    for (int step = 0; step < 2; ++step) {
      StepOne(*optimizer, step, 0.5f, gradient[i], &value, &alone);
    }
    EXPECT_EQ(values[i], value) << i;
  }
}

}  // namespace
}  // namespace satrap
