#include "embedding_ps/optimizer/row_step.h"

#include <cmath>

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

TEST(RowStepTest, ARowMayBeLeftAloneForBillionsOfSteps) {
  for (const int64_t last : {int64_t{0}, int64_t{5}, int64_t{1} << 24, int64_t{1} << 31}) {
    for (const int64_t missed : {int64_t{1} << 23, int64_t{1} << 24, int64_t{3000000000}}) {
      EXPECT_EQ(StepsPassed(EncodedStep(last), last + missed), missed) << last;
    }
  }
}

// Tries the steps at which the encoding changes from one range of floats to the next, and some
// steps in between.
TEST(RowStepTest, EveryStepOfThePeriodHasAFloatOfItsOwn) {
  constexpr int64_t kNegative = kMostExactCount + kLargerFloats;
  for (const int64_t step :
       {int64_t{0}, int64_t{1}, kMostExactCount - 2, kMostExactCount - 1, kMostExactCount,
        kMostExactCount + 1, int64_t{1} << 28, kNegative - 2, kNegative - 1, kNegative,
        kNegative + 1, int64_t{1} << 31, kRowStepPeriod - 1}) {
    const float encoded = EncodedStep(step);
    EXPECT_TRUE(std::isnormal(encoded)) << step << " is " << encoded;
    EXPECT_EQ(DecodedStep(encoded), step) << encoded;
    EXPECT_EQ(SkipStep(encoded), EncodedStep(step + 1));
  }
  EXPECT_EQ(EncodedStep(kMostExactCount - 1), static_cast<float>(kMostExactCount))
      << "as older cuts have it";
}

TEST(RowStepTest, ACountGoesOnPast24Bits) {
  float count = static_cast<float>(kMostExactCount - 10);
  for (int64_t step = 0; step < 1010; ++step) count = CountOn(count, step);
  EXPECT_NEAR(count, static_cast<double>(kMostExactCount) + 1000, 2);
  count = 0x1p30f;
  for (int64_t step = 0; step < 100000; ++step) count = CountOn(count, step);
  EXPECT_NEAR(count, 0x1p30 + 100000, 128);
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
