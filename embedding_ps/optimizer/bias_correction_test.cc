#include "embedding_ps/optimizer/bias_correction.h"

#include <cmath>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(BiasCorrectionTest, HasTheBitsOfThePowerForEveryStep) {
  for (const float beta : {0.0f, 0.5f, 0.9f, 0.999f, 0.99999f}) {
    const BiasCorrection correction(beta);
    for (int t = 1; t < 40000; ++t) {
      const double power = std::pow(static_cast<double>(beta), static_cast<double>(t));
      ASSERT_EQ(correction(static_cast<float>(t)), static_cast<float>(1 - power))
          << "beta " << beta << " step " << t;
    }
    EXPECT_EQ(correction(16777216.0f), 1) << "beta " << beta;
  }
}

}  // namespace
}  // namespace satrap
