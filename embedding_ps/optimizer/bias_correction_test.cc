#include "embedding_ps/optimizer/bias_correction.h"

#include <cmath>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

float Expected(float beta, int t) {
  return static_cast<float>(1 - std::pow(static_cast<double>(beta), static_cast<double>(t)));
}

TEST(BiasCorrectionTest, HasTheBitsOfThePowerForEveryStep) {
  for (const float beta : {0.0f, 0.5f, 0.9f, 0.999f, 0.99999f}) {
    const BiasCorrection correction(beta);
    for (int t = 1; t < 40000; ++t) {
      ASSERT_EQ(correction(static_cast<float>(t)), Expected(beta, t))
          << "beta " << beta << " step " << t;
    }
    EXPECT_EQ(correction(16777216.0f), 1) << "beta " << beta;
  }
}

TEST(BiasCorrectionTest, CorrectionsOfAnotherBetaChangeNothing) {
  const BiasCorrection first(0.97f);
  const BiasCorrection other(0.9701f);
  const BiasCorrection again(0.97f);
  for (int t = 1; t < 2000; ++t) {
    ASSERT_EQ(first(static_cast<float>(t)), Expected(0.97f, t)) << t;
    ASSERT_EQ(other(static_cast<float>(t)), Expected(0.9701f, t)) << t;
    ASSERT_EQ(again(static_cast<float>(t)), Expected(0.97f, t)) << t;
  }
}

TEST(BiasCorrectionTest, ManyThreadsMayMakeThemAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (const float beta : {0.98f, 0.981f, 0.982f}) {
        const BiasCorrection correction(beta);
        EXPECT_EQ(correction(9), Expected(beta, 9)) << beta;
        EXPECT_EQ(correction(500), Expected(beta, 500)) << beta;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace satrap
