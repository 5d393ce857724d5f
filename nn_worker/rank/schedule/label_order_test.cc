#include "nn_worker/rank/schedule/label_order.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int kSteps = 800;
constexpr uint64_t kBatch = 400;

// Returns a LabelOrder after steps whose records are positive with probability rate_at(place),
// where `place` grows from 0 to 1 over the steps.
LabelOrder Trained(const std::function<double(double)>& rate_at, int steps = kSteps,
                   uint64_t seed = 1) {
  LabelOrder order;
  SplitMix64 random(seed);
  for (int step = 0; step < steps; ++step) {
    const double rate = rate_at(static_cast<double>(step) / steps);
    int positives = 0;
    for (uint64_t i = 0; i < kBatch; ++i) positives += random.NextDouble() < rate ? 1 : 0;
    order.AddStep(kBatch, positives);
  }
  return order;
}

double Falling(double place) { return .3 - .2 * place; }

TEST(LabelOrderTest, ARateThatFallsWithThePositionMoves) {
  const LabelOrder order = Trained(Falling);
  const auto moving = order.FindMovingRate();
  ASSERT_TRUE(moving.has_value());
  EXPECT_EQ(moving->windows(), 100u);
  EXPECT_NEAR(moving->highest(), .3, .02);
  EXPECT_NEAR(moving->lowest(), .1, .02);
  // The variance of a uniform distribution of width .2, divided by p (1 - p).
  EXPECT_NEAR(moving->share(), .2 * .2 / 12 / (.2 * .8), .002);
  EXPECT_GT(moving->deviations(), 100);
  EXPECT_NEAR(*order.Rate(), .2, .003);
}

TEST(LabelOrderTest, ARateThatIsTheSameEverywhereDoesNotMoveWhateverTheChance) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_FALSE(Trained([](double) { return .2; }, 300, seed).FindMovingRate().has_value())
        << seed;
  }
}

// Every large real log behaves like this: the drift is not chance, but it does no harm.
TEST(LabelOrderTest, ASmallDriftDoesNotCountThoughItIsCertain) {
  const auto small = [](double place) { return .2 + .02 * std::sin(20 * place); };
  const LabelOrder order = Trained(small, 20000);
  EXPECT_FALSE(order.FindMovingRate().has_value());
  const auto large = [](double place) { return .2 + .05 * std::sin(20 * place); };
  EXPECT_TRUE(Trained(large, 20000).FindMovingRate().has_value());
}

// With so few records in a window, chance alone makes differences this large in about half of the
// runs.
TEST(LabelOrderTest, ALargeDifferenceOfFewRecordsIsChance) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    LabelOrder order;
    SplitMix64 random(seed);
    for (int step = 0; step < 60; ++step) {
      int positives = 0;
      for (int i = 0; i < 5; ++i) positives += random.NextDouble() < .3 ? 1 : 0;
      order.AddStep(5, positives);
    }
    EXPECT_FALSE(order.FindMovingRate().has_value()) << seed;
  }
}

TEST(LabelOrderTest, FewerThanFiftyStepsAreNotJudgedAndLabelsOfOneClassHaveNoOrder) {
  EXPECT_FALSE(Trained(Falling, 49).FindMovingRate().has_value());
  EXPECT_TRUE(Trained(Falling, 50).FindMovingRate().has_value());
  EXPECT_FALSE(Trained([](double) { return 0; }).FindMovingRate().has_value());
  EXPECT_FALSE(Trained([](double) { return 1; }).FindMovingRate().has_value());
  EXPECT_FALSE(LabelOrder().FindMovingRate().has_value());
  EXPECT_FALSE(LabelOrder().Rate().has_value());
}

TEST(LabelOrderTest, WindowsAreOfEquallyManyStepsAndThereAreAlwaysFewOfThem) {
  LabelOrder order;
  for (int step = 1; step <= 5000; ++step) {
    order.AddStep(2, 1);
    const LabelWindows& state = order.state();
    const int windows = state.samples_size();
    ASSERT_LE(windows, LabelOrder::kMostWindows);
    ASSERT_GE(windows, std::min(step, LabelOrder::kMostWindows / 2));
    for (int i = 0; i + 1 < windows; ++i) {
      ASSERT_EQ(state.samples(i), 2 * state.window_steps());
      ASSERT_EQ(state.positives(i), static_cast<double>(state.window_steps()));
    }
    ASSERT_EQ(state.samples(windows - 1), 2 * state.open_steps());
  }
  EXPECT_EQ(order.Rate(), .5);
}

TEST(LabelOrderTest, GoesOnFromTheStateOfACut) {
  LabelOrder whole, half;
  for (int step = 0; step < 777; ++step) {
    if (step == 333) half = LabelOrder(half.state());
    for (LabelOrder* order : {&whole, &half}) order->AddStep(10, step % 10);
  }
  EXPECT_EQ(half.state().SerializeAsString(), whole.state().SerializeAsString());
}

}  // namespace
}  // namespace satrap
