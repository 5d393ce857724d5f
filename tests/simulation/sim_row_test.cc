#include "tests/simulation/sim_row.h"

#include <cmath>

#include "gtest/gtest.h"

namespace satrap::simulation {
namespace {

constexpr double kExact = 1e-12;

TEST(SimRowTest, TakesL2AndClippingBeforeTheStepAndTheBoundAfterIt) {
  WorldShape shape;  // SGD, learning rate 0.5
  shape.l2 = 0.5;
  shape.gradient_clip_norm = 2.5;
  shape.weight_bound = 1.5;
  SimRow row;
  // Divided by 2 and with L2 on values of 1: (3, 4 | 12), of norms 5 and 12; clipped: (1.5, 2 | 2.5).
  row.Step(shape, {{5, 7, 23}, 2});
  EXPECT_NEAR(row.values[0], 0.25, kExact);
  EXPECT_NEAR(row.values[1], 0, kExact);
  EXPECT_NEAR(row.values[2], -0.25, kExact);
  row.Step(shape, {{0, 0, 9}, 1, 1, 1});
  EXPECT_NEAR(row.values[2], -1.5, kExact) << "-.25 - 1.25, and bounded";
  row.Step(shape, {{0, 0, 9}, 1, 1, 2});
  EXPECT_NEAR(row.values[2], -1.5, kExact);
}

TEST(SimRowTest, AddsL2OnceAStepAndGivesAPartItsShareOfTheClipNorm) {
  WorldShape shape;
  shape.l2 = 0.5;
  shape.gradient_clip_norm = 4;
  SimRow row;
  row.Step(shape, {{0, 0, 9}, 1, 0.25, 3});
  EXPECT_NEAR(row.values[0], 0.75, kExact);
  EXPECT_NEAR(row.values[2], 0.5, kExact) << "clipped to 1";
  row.Step(shape, {{0, 0, 0}, 1, 1, 3});
  EXPECT_NEAR(row.values[0], 0.75, kExact) << "the step's second part";
  row.Step(shape, {{0, 0, 0}, 1, 1, 2});
  EXPECT_NEAR(row.values[0], 0.75, kExact) << "late";
}

TEST(SimRowTest, StepsAdagradAsWorkedOutByHand) {
  WorldShape shape;
  shape.optimizers[0] = SparseOptimizerConfig::kRowwiseAdagrad;
  shape.optimizers[1] = SparseOptimizerConfig::kAdagrad;
  SimRow row;
  // Mean square of (1, 7) is 25; accumulators begin at .25.
  row.Step(shape, {{1, 7, 2}});
  EXPECT_NEAR(row.values[0], 1 - 0.125 * 1 / (std::sqrt(25.25) + 0.5), kExact);
  EXPECT_NEAR(row.values[1], 1 - 0.125 * 7 / (std::sqrt(25.25) + 0.5), kExact);
  EXPECT_NEAR(row.values[2], 1 - 0.125 * 2 / (std::sqrt(4.25) + 0.5), kExact);
}

TEST(SimRowTest, StepsAdamAsWorkedOutByHand) {
  WorldShape shape;
  shape.optimizers[0] = shape.optimizers[1] = SparseOptimizerConfig::kAdam;
  SimRow row;
  row.Step(shape, {{2, 0, 0}});
  // The corrected moments of a first step are g and g^2.
  EXPECT_NEAR(row.values[0], 1 - 0.125 * 2 / (2 + 0.5), kExact);
  row.Step(shape, {{0, 0, 0}});
  const double first = 0.9 * 0.2 / (1 - 0.81);
  const double second = 0.999 * 0.004 / (1 - 0.999 * 0.999);
  EXPECT_NEAR(row.values[0], 0.9 - 0.125 * first / (std::sqrt(second) + 0.5), kExact);
  EXPECT_EQ(row.values[1], 1);
}

}  // namespace
}  // namespace satrap::simulation
