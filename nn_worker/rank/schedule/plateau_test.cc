#include "nn_worker/rank/schedule/plateau.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

EvaluationConfig Config(double factor, int patience, Metric metric = AUC) {
  EvaluationConfig config;
  config.set_metric(metric);
  config.mutable_reduce_on_plateau()->set_factor(factor);
  config.mutable_reduce_on_plateau()->set_patience(patience);
  return config;
}

MetricValues Values(double value) {
  MetricValues values;
  values.set_samples(10);
  values.set_auc(value);
  values.set_logloss(value);
  return values;
}

// The factor after each of these validations.
std::vector<double> Factors(Plateau* plateau, const std::vector<double>& validations) {
  std::vector<double> factors;
  for (const double value : validations) {
    const double before = plateau->factor();
    const bool reduced = plateau->Offer(Values(value));
    EXPECT_EQ(reduced, plateau->factor() != before);
    factors.push_back(plateau->factor());
  }
  return factors;
}

TEST(PlateauTest, ReducesAfterSoManyValidationsInARowWithoutABest) {
  Plateau plateau(Config(.5, 2), PlateauState());
  EXPECT_EQ(Factors(&plateau, {.6, .5, .6, .5, .7, .6, .6, .8}),
            (std::vector<double>{1, 1, .5, .5, .5, .5, .25, .25}));
}

TEST(PlateauTest, ABetterOneCountsFromMinDeltaOn) {
  EvaluationConfig config = Config(.5, 1);
  config.mutable_reduce_on_plateau()->set_min_delta(.25);
  Plateau plateau(config, PlateauState());
  // The best stays .25: .375 is not better by min_delta, and .5 is also compared with .25.
  EXPECT_EQ(Factors(&plateau, {.25, .375, .5}), (std::vector<double>{1, .5, .5}));
  config.mutable_reduce_on_plateau()->set_min_delta(0);
  Plateau exact(config, PlateauState());
  EXPECT_EQ(Factors(&exact, {.25, .25, .26}), (std::vector<double>{1, .5, .5})) << "a tie";
}

TEST(PlateauTest, LowerIsBetterForALoss) {
  Plateau plateau(Config(.5, 1, LOGLOSS), PlateauState());
  EXPECT_EQ(Factors(&plateau, {.6, .5, .55}), (std::vector<double>{1, 1, .5}));
  EXPECT_EQ(plateau.state().best(), .5) << "as the metric is, not negated";
}

TEST(PlateauTest, AValidationThatIsNotANumberIsNotBetter) {
  Plateau plateau(Config(.5, 1), PlateauState());
  EXPECT_EQ(Factors(&plateau, {NAN, .6, NAN}), (std::vector<double>{.5, .5, .25}));
  MetricValues empty = Values(.9);
  empty.set_samples(0);
  EXPECT_TRUE(plateau.Offer(empty));
}

TEST(PlateauTest, TheProductStaysAtOrAboveMinFactor) {
  EvaluationConfig config = Config(.5, 1);
  config.mutable_reduce_on_plateau()->set_min_factor(.2);
  Plateau plateau(config, PlateauState());
  EXPECT_EQ(Factors(&plateau, {.6, .6, .6, .6, .6}), (std::vector<double>{1, .5, .25, .2, .2}));
}

TEST(PlateauTest, GoesOnFromAnyState) {
  const std::vector<double> validations = {.6, .5, .7, .7, .6, .5, .8, .1, .1};
  Plateau whole(Config(.5, 2), PlateauState());
  const std::vector<double> factors = Factors(&whole, validations);
  for (size_t cut = 0; cut <= validations.size(); ++cut) {
    Plateau first(Config(.5, 2), PlateauState());
    Factors(&first, {validations.begin(), validations.begin() + static_cast<ptrdiff_t>(cut)});
    Plateau second(Config(.5, 2), first.state());
    EXPECT_EQ(
        Factors(&second, {validations.begin() + static_cast<ptrdiff_t>(cut), validations.end()}),
        std::vector<double>(factors.begin() + static_cast<ptrdiff_t>(cut), factors.end()));
    EXPECT_EQ(second.state().ShortDebugString(), whole.state().ShortDebugString());
  }
}

}  // namespace
}  // namespace satrap
