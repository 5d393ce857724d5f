#include "embedding_ps/optimizer/momentum.h"

#include "embedding_ps/optimizer/testing/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config(OptimizerConfig::Momentum::Form form, float mu, float dampening) {
  SparseOptimizerConfig config;
  config.mutable_momentum()->set_form(form);
  config.mutable_momentum()->set_mu(mu);
  config.mutable_momentum()->set_dampening(dampening);
  return config;
}

constexpr auto kInside = OptimizerConfig::Momentum::RATE_INSIDE;
constexpr auto kOutside = OptimizerConfig::Momentum::RATE_OUTSIDE;

TEST(MomentumTest, FollowsTheScalarReferenceWithTheRateInside) {
  ExpectFollowsReference(*OptimizerOf(Config(kInside, 0.9f, 0)), 19,
                         [](double lr, const Doubles& g, Doubles& w, Doubles& m) {
                           for (size_t i = 0; i < w.size(); ++i) {
                             m[i] = 0.9f * m[i] - lr * g[i];
                             w[i] += m[i];
                           }
                         });
}

TEST(MomentumTest, FollowsTheScalarReferenceWithTheRateOutside) {
  for (const float dampening : {0.0f, 0.25f}) {
    ExpectFollowsReference(*OptimizerOf(Config(kOutside, 0.8f, dampening)), 19,
                           [=](double lr, const Doubles& g, Doubles& w, Doubles& m) {
                             for (size_t i = 0; i < w.size(); ++i) {
                               m[i] = 0.8f * m[i] + (1 - dampening) * g[i];
                               w[i] -= lr * m[i];
                             }
                           });
  }
}

TEST(MomentumTest, TheFormsDifferOnceTheRateChanges) {
  for (const auto form : {kInside, kOutside}) {
    const auto optimizer = OptimizerOf(Config(form, 0.5f, 0));
    float value = 8;
    std::vector<float> state = NewState(*optimizer);
    StepOne(*optimizer, 0, 1, 4, &value, &state);
    EXPECT_EQ(value, 4);
    StepOne(*optimizer, 1, 0.5f, 0, &value, &state);
    EXPECT_EQ(value, form == kInside ? 2 : 3);
  }
}

TEST(MomentumTest, RefusesConstantsOutOfRange) {
  EXPECT_EQ(NewSparseOptimizer(Config(kInside, 1, 0)).status().message(),
            "momentum.mu: must be in [0, 1), got 1");
  EXPECT_EQ(NewSparseOptimizer(Config(kInside, 0.9f, 0.5f)).status().message(),
            "momentum.dampening: needs form RATE_OUTSIDE, got 0.5 with RATE_INSIDE");
}

}  // namespace
}  // namespace satrap
