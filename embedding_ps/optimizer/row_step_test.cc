#include "embedding_ps/optimizer/row_step.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RowStepTest, CountsTheStepsSinceTheLastOne) {
  EXPECT_EQ(StepsPassed(0, 0), 1);
  EXPECT_EQ(StepsPassed(0, 7), 8);
  EXPECT_EQ(StepsPassed(EncodedStep(3), 4), 1);
  EXPECT_EQ(StepsPassed(EncodedStep(3), 13), 10);
}

TEST(RowStepTest, AStepAndThoseBeforeItPassOnce) {
  EXPECT_EQ(StepsPassed(EncodedStep(3), 3), 0);
  EXPECT_EQ(StepsPassed(EncodedStep(300), 300 - kMostStepsLate), 0);
}

TEST(RowStepTest, ARowOfARunWithMoreStepsBeginsAnew) {
  EXPECT_EQ(StepsPassed(EncodedStep(1000), 2), 1);
}

TEST(RowStepTest, GoesOnPastThePeriod) {
  EXPECT_EQ(StepsPassed(EncodedStep(kRowStepPeriod - 1), kRowStepPeriod + 4), 5);
  EXPECT_EQ(StepsPassed(EncodedStep(kRowStepPeriod), kRowStepPeriod - 1), 0);
  EXPECT_EQ(StepsPassed(EncodedStep(5 * kRowStepPeriod + 2), 5 * kRowStepPeriod + 2), 0);
}

TEST(RowStepTest, AStepThatWasNoneIsNotMissed) {
  EXPECT_EQ(StepsPassed(SkipStep(0), 7), 7);
  EXPECT_EQ(StepsPassed(SkipStep(EncodedStep(3)), 13), 9);
  EXPECT_EQ(StepsPassed(SkipStep(EncodedStep(3)), 4), 0);
  EXPECT_EQ(SkipStep(EncodedStep(kRowStepPeriod - 1)), EncodedStep(kRowStepPeriod));
}

}  // namespace
}  // namespace satrap
