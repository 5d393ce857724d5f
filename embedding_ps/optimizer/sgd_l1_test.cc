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
  // A second part of the same step and a late part of an earlier step add no penalty.
  StepOne(*optimizer, 4, 1, 0, &value, &state);
  StepOne(*optimizer, 3, 1, 0, &value, &state);
  EXPECT_EQ(value, 2.75f);
}

// If the sum of all penalties were kept in f32, it would stop growing long before 40 million steps.
TEST(SgdL1Test, EachStepIsPaidForAfter40MillionOthers) {
  constexpr int64_t kBefore = 40'000'000;
  constexpr float kL1 = 1e-6f;
  const auto optimizer = OptimizerOf(Config(kL1));
  for (const float sign : {1.0f, -1.0f}) {
    float value = 41 * sign;
    std::vector<float> state = NewState(*optimizer);
    StepOne(*optimizer, kBefore - 1, 1, 0, &value, &state);
    EXPECT_NEAR(value, sign, 4e-6) << "40 are paid";
    const float before = value;
    for (int64_t step = 0; step < 100'000; ++step) {
      StepOne(*optimizer, kBefore + step, 1, 0, &value, &state);
    }
    EXPECT_NEAR(value, before - sign * .1f, 1e-5);
  }
}

// A payment that is too small to change the weight (less than half of its last bit) is not lost: it
// stays owed until the sum is large enough.
TEST(SgdL1Test, ALargeWeightPaysWhatRoundingHeldBack) {
  const auto optimizer = OptimizerOf(Config(1e-6f));
  float value = 1024;
  std::vector<float> state = NewState(*optimizer);
  for (int64_t step = 0; step < 100'000; ++step) StepOne(*optimizer, step, 1, 0, &value, &state);
  EXPECT_NEAR(value, 1024 - .1f, 0x1p-13);
}

// The two debts are u + q and u - q. So what a weight has paid above 0 is added to its debt below
// 0.
TEST(SgdL1Test, AWeightThatChangesSidesOwesThereWhatItHasPaidHere) {
  const auto optimizer = OptimizerOf(Config(.25f));
  float value = 1;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 0, 1, 0, &value, &state);
  EXPECT_EQ(value, .75f);
  // The gradient moves z to -1. Before the payment, u = .5 and q = -.25.
  StepOne(*optimizer, 1, 1, 1.75f, &value, &state);
  EXPECT_EQ(value, -.25f);
}

TEST(SgdL1Test, AWeightThatHasLongBeenAboveZeroIsHeldThereForAsMuch) {
  const auto optimizer = OptimizerOf(Config(1e-6f));
  float value = 41;
  std::vector<float> state = NewState(*optimizer);
  StepOne(*optimizer, 39'999'999, 1, 0, &value, &state);
  // The weight has paid 40 above 0, so it now owes 80 below 0.
  float paid = 0;
  for (int64_t step = 40'000'000; paid < 79; ++step) {
    const float before = value;
    StepOne(*optimizer, step, 1, 2, &value, &state);
    paid += 2 - before;
    ASSERT_EQ(value, 0) << paid;
  }
  StepOne(*optimizer, 40'000'100, 1, 4, &value, &state);
  EXPECT_LT(value, 0);
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
