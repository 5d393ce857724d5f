#include "embedding_ps/clipped_step.h"

#include <utility>

#include "gtest/gtest.h"

namespace satrap {
namespace {

StepSum SumOfStep(uint64_t step) {
  StepSum sum;
  sum.header.set_step(step);
  return sum;
}

rpc::PendingAnswer CallOf(uint32_t rank) {
  rpc::PendingAnswer call;
  call.sender = rank;
  return call;
}

TEST(ClippedStepTest, TheFirstFactorAppliesTheStepAndTheOthersWaitForIt) {
  ClippedStep steps;
  steps.Begin(SumOfStep(3));
  auto first = steps.Add(3, 0.5f, CallOf(1));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(first->apply.has_value());
  EXPECT_EQ(first->apply->header.step(), 3u);
  EXPECT_FALSE(first->answer);
  const auto second = steps.Add(3, 0.5f, CallOf(0));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(second->apply.has_value() || second->answer);
  const auto calls = steps.End();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].sender, 1u);
  EXPECT_EQ(calls[1].sender, 0u);
  // A later ApplyStep of a step that is already applied is answered at once.
  const auto late = steps.Add(3, 0.5f, CallOf(2));
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_TRUE(late->answer && !late->apply.has_value());
  steps.Begin(SumOfStep(4));
  EXPECT_TRUE(steps.Add(4, 1, CallOf(0))->apply.has_value());
}

TEST(ClippedStepTest, RefusesAnotherStepAnotherFactorAndFactorsOutOfRange) {
  ClippedStep steps;
  EXPECT_FALSE(steps.Add(0, 1, CallOf(0)).ok());
  steps.Begin(SumOfStep(3));
  EXPECT_FALSE(steps.Add(2, 1, CallOf(0)).ok());
  EXPECT_FALSE(steps.Add(4, 1, CallOf(0)).ok());
  EXPECT_FALSE(steps.Add(3, -0.5f, CallOf(0)).ok());
  EXPECT_FALSE(steps.Add(3, 1.5f, CallOf(0)).ok());
  EXPECT_TRUE(steps.Add(3, 0.5f, CallOf(0)).ok());
  EXPECT_FALSE(steps.Add(3, 0.25f, CallOf(1)).ok());
  EXPECT_EQ(steps.End().size(), 1u);
  EXPECT_EQ(steps.Add(3, 0.25f, CallOf(1)).status().message(),
            "clip_factor: got 0.25 for step 3, which was already applied with 0.5");
}

}  // namespace
}  // namespace satrap
