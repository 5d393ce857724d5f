#include "tests/simulation/data/sim_row.h"

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
  // After division by 2 and with L2 on values of 1 the gradients are (3, 4 | 12), with norms 5 and
  // 12. Clipping makes them (1.5, 2 | 2.5).
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

TEST(SimRowTest, StepsRowsThatNoSampleHoldsOnlyIfEveryRowSteps) {
  WorldShape shape;
  shape.l2 = 0.5;
  std::map<uint64_t, SimRow> rows;
  StepTable(shape, {{1, {0, 0, 0}}}, {1, 0}, &rows);
  EXPECT_NEAR(rows[1].values[0], 0.75, kExact);
  StepTable(shape, {{2, {0, 0, 0}}}, {1, 1}, &rows);
  EXPECT_NEAR(rows[1].values[0], 0.75, kExact);
  shape.global = true;
  StepTable(shape, {{2, {0, 0, 0}}}, {1, 2}, &rows);
  EXPECT_NEAR(rows[1].values[0], 0.75, kExact) << "L2 of touched rows";
  shape.dense_l2 = true;
  StepTable(shape, {{2, {0, 0, 0}}}, {1, 3}, &rows);
  EXPECT_NEAR(rows[1].values[0], 0.5625, kExact);
  StepTable(shape, {{3, {0, 0, 0}}}, {1, 7}, &rows);
  EXPECT_EQ(rows[3].steps, 8) << "as if it had been there from the beginning";
  shape.frozen = true;
  StepTable(shape, {{3, {1, 1, 1}}, {4, {1, 1, 1}}}, {1, 8}, &rows);
  EXPECT_EQ(rows[3].steps, 8);
  EXPECT_EQ(rows[4].values[0], 1);
}

// The first step whose dense gradient has this sum of squares.
int64_t StepWithSquares(const WorldShape& shape, double squares) {
  uint64_t step = 0;
  while (DenseSquares(shape, step) != squares) ++step;
  return static_cast<int64_t>(step);
}

TEST(SimRowTest, ClipsAllRowsOfAStepTogetherWithTheDenseNetwork) {
  WorldShape shape;
  const int64_t step = StepWithSquares(shape, 1);
  const std::map<uint64_t, RowGradient> sums = {{1, {4, 0, 0}}, {2, {0, 8, 4}}};
  std::map<uint64_t, SimRow> rows;
  EXPECT_EQ(StepTable(shape, sums, {2, step}, &rows), 25);
  EXPECT_NEAR(rows[1].values[0], 1 - 0.5 * 2, kExact) << "nothing is clipped";
  shape.step_clip_norm = 2.5;
  rows.clear();
  EXPECT_EQ(StepTable(shape, sums, {2, step}, &rows), 25);
  EXPECT_NEAR(rows[1].values[0], 1 - 0.5 * 1, kExact);
  EXPECT_NEAR(rows[2].values[1], 1 - 0.5 * 2, kExact);
  EXPECT_NEAR(rows[2].values[2], 1 - 0.5 * 1, kExact);
}

TEST(SimRowTest, ClipsRowsThatNoSampleHoldsIfTheyHaveGradientsAndNoFrozenOnes) {
  WorldShape shape;
  shape.global = true;
  shape.dense_l2 = true;
  shape.l2 = 2;
  shape.step_clip_norm = 2.5;
  const int64_t step = StepWithSquares(shape, 1);
  std::map<uint64_t, SimRow> rows;
  rows[1].values = {1, -1, 0};
  rows[2].values = {0, 0, 0};
  EXPECT_EQ(StepTable(shape, {{2, {4, 0, 0}}}, {1, step}, &rows), 1 + 4 + 4 + 16);
  EXPECT_NEAR(rows[1].values[0], 1 - 0.5 * 1, kExact);
  EXPECT_NEAR(rows[2].values[0], -0.5 * 2, kExact);
  shape.frozen = true;
  EXPECT_EQ(StepTable(shape, {{2, {4, 0, 0}}}, {1, step}, &rows), 1);
}

TEST(SimRowTest, StepsAdagradAsWorkedOutByHand) {
  WorldShape shape;
  shape.optimizers[0] = SparseOptimizerConfig::kRowwiseAdagrad;
  shape.optimizers[1] = SparseOptimizerConfig::kAdagrad;
  SimRow row;
  // The mean square of (1, 7) is 25. Accumulators begin at .25.
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
