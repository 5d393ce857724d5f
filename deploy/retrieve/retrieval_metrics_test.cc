#include "deploy/retrieve/retrieval_metrics.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RetrievalMetricsTest, EqualsAComputationByHand) {
  RetrievalMetrics metrics({1, 3});
  metrics.Add({7, 5, 9}, {5, 9, 4});
  const std::vector<RetrievalValues> values = metrics.Values();
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].k, 1);
  EXPECT_EQ(values[0].recall, 0);
  EXPECT_EQ(values[0].ndcg, 0);
  EXPECT_EQ(values[0].hit_rate, 0);
  EXPECT_EQ(values[0].mrr, 0);
  EXPECT_DOUBLE_EQ(values[1].recall, 2.0 / 3);
  const double second = 1 / std::log2(3), third = 0.5;
  EXPECT_DOUBLE_EQ(values[1].ndcg, (second + third) / (1 + second + third));
  EXPECT_EQ(values[1].hit_rate, 1);
  EXPECT_EQ(values[1].mrr, 0.5);
}

TEST(RetrievalMetricsTest, AreMeansOverUsers) {
  RetrievalMetrics metrics({2});
  metrics.Add({1, 2}, {1});
  metrics.Add({1, 2}, {3});
  EXPECT_EQ(metrics.users(), 2);
  EXPECT_EQ(metrics.Values()[0].recall, 0.5);
  EXPECT_EQ(metrics.Values()[0].mrr, 0.5);
}

TEST(RetrievalMetricsTest, AListThatHoldsEveryHeldOutItemFirstIsPerfect) {
  RetrievalMetrics metrics({5});
  metrics.Add({4, 3, 8, 9, 10}, {3, 4});
  EXPECT_EQ(metrics.Values()[0].recall, 1);
  EXPECT_EQ(metrics.Values()[0].ndcg, 1);
}

TEST(RetrievalMetricsTest, UsersWithoutHeldOutItemsDoNotCount) {
  RetrievalMetrics metrics({1});
  metrics.Add({1}, {});
  EXPECT_EQ(metrics.users(), 0);
  EXPECT_TRUE(std::isnan(metrics.Values()[0].recall));
  EXPECT_TRUE(std::isnan(metrics.Values()[0].mrr));
}

TEST(RetrievalMetricsTest, AHeldOutItemGivenTwiceCountsOnce) {
  RetrievalMetrics metrics({1});
  metrics.Add({6}, {6, 6});
  EXPECT_EQ(metrics.Values()[0].recall, 1);
}

TEST(RetrievalMetricsTest, AListShorterThanKIsComparedAsFarAsItGoes) {
  RetrievalMetrics metrics({10});
  metrics.Add({6}, {6, 7});
  EXPECT_EQ(metrics.Values()[0].recall, 0.5);
  metrics.Add({}, {6});
  EXPECT_EQ(metrics.Values()[0].recall, 0.25);
}

}  // namespace
}  // namespace satrap
