#include "nn_worker/metrics/tail_calibration.h"

#include <cmath>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(TailCalibrationTest, CoversTheLastTenthOfHoweverManySamples) {
  for (const int batches : {1, 9, 100, 127, 128, 129, 1000, 54321}) {
    TailCalibration tail;
    for (int i = 0; i < batches; ++i) tail.Add(64, 16, 20);
    const double share = static_cast<double>(tail.Compute().samples) / (64.0 * batches);
    EXPECT_GE(share, .1) << batches;
    if (batches >= 100) {
      EXPECT_LE(share, .1 + 1.0 / 64) << batches;
    }
    EXPECT_DOUBLE_EQ(tail.Compute().calibration, 1.25);
  }
}

TEST(TailCalibrationTest, ForgetsWhatCameBefore) {
  TailCalibration tail;
  for (int i = 0; i < 8000; ++i) tail.Add(100, 10, 90);
  for (int i = 0; i < 2000; ++i) tail.Add(100, 10, 11);
  EXPECT_NEAR(tail.Compute().calibration, 1.1, 1e-9);
}

TEST(TailCalibrationTest, IsUndefinedWithoutAPositive) {
  TailCalibration tail;
  EXPECT_TRUE(std::isnan(tail.Compute().calibration));
  tail.Add(0, 0, 0);
  EXPECT_EQ(tail.Compute().samples, 0u);
  tail.Add(5, 0, 1);
  EXPECT_TRUE(std::isnan(tail.Compute().calibration));
}

}  // namespace
}  // namespace satrap
