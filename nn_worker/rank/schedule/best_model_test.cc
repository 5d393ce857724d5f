#include "nn_worker/rank/schedule/best_model.h"

#include <limits>

#include "gtest/gtest.h"

namespace satrap {
namespace {

EvaluationConfig Config(Metric metric, int patience) {
  EvaluationConfig config;
  config.set_metric(metric);
  config.set_patience(patience);
  return config;
}

MetricValues Values(double auc, double logloss) {
  MetricValues values;
  values.set_samples(10);
  values.set_auc(auc);
  values.set_logloss(logloss);
  return values;
}

TEST(BestModelTest, AHigherAucIsBetter) {
  BestModel best(Config(AUC, 0));
  EXPECT_TRUE(best.Offer(Values(.6, .5)));
  EXPECT_FALSE(best.Offer(Values(.6, .1)));
  EXPECT_TRUE(best.Offer(Values(.7, .9)));
}

TEST(BestModelTest, ALowerLoglossIsBetter) {
  BestModel best(Config(LOGLOSS, 0));
  EXPECT_TRUE(best.Offer(Values(.6, .5)));
  EXPECT_FALSE(best.Offer(Values(.9, .6)));
  EXPECT_TRUE(best.Offer(Values(.1, .4)));
}

TEST(BestModelTest, EveryMetricHasItsDirection) {
  for (const Metric metric : {GAUC, MAE, MSE, RMSE}) {
    const bool higher = metric == GAUC;
    const auto values = [metric](double value) {
      MetricValues values = Values(value, value);
      if (metric == GAUC) values.set_gauc_by_samples(value);
      if (metric == MAE) values.set_mae(value);
      if (metric == MSE) values.set_mse(value);
      if (metric == RMSE) values.set_rmse(value);
      return values;
    };
    BestModel best(Config(metric, 0));
    EXPECT_TRUE(best.Offer(values(.5)));
    EXPECT_EQ(best.Offer(values(.6)), higher) << Metric_Name(metric);
    EXPECT_EQ(best.Offer(values(.4)), !higher) << Metric_Name(metric);
  }
}

TEST(BestModelTest, AnyValueIsBetterThanOneThatTheCutDoesNotHave) {
  BestModel best(Config(RMSE, 0), Values(.7, .5), /*without_best=*/1);
  MetricValues values = Values(.1, .9);
  EXPECT_FALSE(best.Offer(values)) << "nor do these have it";
  values.set_rmse(3);
  EXPECT_TRUE(best.Offer(values));
}

TEST(BestModelTest, GoesOnFromWhatACutSays) {
  BestModel best(Config(AUC, 2), Values(.7, .5), /*without_best=*/1);
  EXPECT_FALSE(best.out_of_patience());
  EXPECT_FALSE(best.Offer(Values(.7, .5)));
  EXPECT_EQ(best.without_best(), 2);
  EXPECT_TRUE(best.out_of_patience());
  EXPECT_TRUE(best.Offer(Values(.8, .5)));
  EXPECT_EQ(best.without_best(), 0);
}

TEST(BestModelTest, PatienceCountsValidationsInARowWithoutABest) {
  BestModel best(Config(AUC, 2));
  best.Offer(Values(.5, 1));
  best.Offer(Values(.4, 1));
  EXPECT_FALSE(best.out_of_patience());
  best.Offer(Values(.6, 1));
  best.Offer(Values(.4, 1));
  EXPECT_FALSE(best.out_of_patience());
  best.Offer(Values(.4, 1));
  EXPECT_TRUE(best.out_of_patience());
}

TEST(BestModelTest, WithoutPatienceThereIsNoEnd) {
  BestModel best(Config(AUC, 0));
  for (int i = 0; i < 100; ++i) best.Offer(Values(.5, 1));
  EXPECT_FALSE(best.out_of_patience());
}

TEST(BestModelTest, NanAndEmptySetsAreNeverTheBest) {
  BestModel best(Config(AUC, 0));
  EXPECT_FALSE(best.Offer(Values(std::numeric_limits<double>::quiet_NaN(), .1)));
  EXPECT_FALSE(best.Offer(MetricValues()));
  EXPECT_TRUE(best.Offer(Values(.2, .1)));
}

}  // namespace
}  // namespace satrap
