#include "embedding_ps/optimizer/sgd_l1.h"

#include "embedding_ps/optimizer/reference_check.h"

namespace satrap {
namespace {

using Doubles = std::vector<double>;

SparseOptimizerConfig Config(float l1) {
  SparseOptimizerConfig config;
  config.mutable_sgd_l1()->set_l1(l1);
  return config;
}

TEST(SgdL1Test, FollowsTheScalarReference) {
  constexpr float kL1 = 0.1f;
  double u = 0;
  ExpectFollowsReference(*OptimizerOf(Config(kL1)), 19,
                         [&u](double lr, const Doubles& g, Doubles& w, Doubles& q) {
                           u += lr * kL1;
                           for (size_t i = 0; i < w.size(); ++i) {
                             const double z = w[i] - lr * g[i];
                             w[i] = z;
                             if (z > 0) w[i] = std::max(0.0, z - (u + q[i]));
                             if (z < 0) w[i] = std::min(0.0, z + (u - q[i]));
                             q[i] += w[i] - z;
                           }
                         });
}

TEST(SgdL1Test, ARowPaysForTheStepsThatItMissed) {
  const auto optimizer = OptimizerOf(Config(0.25f));
  float value = 4;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 0, 1, 0, &value, &state);
  EXPECT_EQ(value, 3.75f);
  StepOne(*optimizer, 4, 1, 0, &value, &state);
  EXPECT_EQ(value, 2.75f) << "four more steps have passed";
  // A second part of the step, and one of an earlier step that is late, owe nothing more.
  StepOne(*optimizer, 4, 1, 0, &value, &state);
  StepOne(*optimizer, 3, 1, 0, &value, &state);
  EXPECT_EQ(value, 2.75f);
}

TEST(SgdL1Test, ThePenaltyEndsAtZeroFromBothSides) {
  const auto optimizer = OptimizerOf(Config(1));
  for (const float start : {0.5f, -0.5f}) {
    float value = start;
    std::vector<float> state = NewState(*optimizer);
    StepOne(*optimizer, 0, 1, 0, &value, &state);
    EXPECT_EQ(value, 0);
  }
}

}  // namespace
}  // namespace satrap
