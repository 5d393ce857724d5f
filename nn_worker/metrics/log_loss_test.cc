#include "nn_worker/metrics/log_loss.h"

#include <cmath>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(LogLossTest, ByHand) {
  LogLoss metric;
  metric.Add(0, 1, 1);
  metric.Add(std::log(3.0f), 0, 2);  // p = 3/4
  const double loss = (std::log(2.0) + 2 * std::log(4.0)) / 3;
  EXPECT_NEAR(metric.LogLossValue().value, loss, 1e-7);
  EXPECT_NEAR(metric.Calibration().value, 0.5 + 2 * 0.75, 1e-7);
  const double entropy = -(std::log(1.0 / 3) / 3 + 2 * std::log(2.0 / 3) / 3);
  EXPECT_NEAR(metric.NormalisedEntropy().value, loss / entropy, 1e-7);
  EXPECT_EQ(metric.samples(), 2);
  EXPECT_EQ(metric.weight(), 3);
}

TEST(LogLossTest, FarLogitsStayFinite) {
  LogLoss metric;
  metric.Add(-300, 1, 1);
  EXPECT_EQ(metric.LogLossValue().value, 300);
}

TEST(LogLossTest, UndefinedSaysWhy) {
  LogLoss metric;
  EXPECT_EQ(metric.LogLossValue().reason, "no sample");
  metric.Add(1, 1, 1);
  EXPECT_EQ(metric.NormalisedEntropy().reason, "no negative sample");
  LogLoss negatives;
  negatives.Add(1, 0, 1);
  EXPECT_TRUE(std::isnan(negatives.NormalisedEntropy().value));
  EXPECT_EQ(negatives.Calibration().reason, "no positive sample");
}

TEST(LogLossTest, ACompensatedSumKeepsWhatAPlainOneLoses) {
  CompensatedSum sum;
  sum.Add(1e16);
  for (int i = 0; i < 1000; ++i) sum.Add(1);
  sum.Add(-1e16);
  EXPECT_EQ(sum.value(), 1000);
}

}  // namespace
}  // namespace satrap
