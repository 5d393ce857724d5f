#include "embedding_ps/initializer/initializer.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

InitializerConfig Uniform(float low, float high) {
  InitializerConfig config;
  config.mutable_uniform()->set_low(low);
  config.mutable_uniform()->set_high(high);
  return config;
}

InitializerConfig Normal(float mean, float stddev) {
  InitializerConfig config;
  config.mutable_normal()->set_mean(mean);
  config.mutable_normal()->set_stddev(stddev);
  return config;
}

std::vector<float> Values(const InitializerConfig& config, uint64_t seed, uint32_t table,
                          int segment, uint64_t key, int dim) {
  const auto initializer = Initializer::Create(config, seed, table, segment);
  CHECK(initializer.ok()) << initializer.status().ToString();
  std::vector<float> values(dim);
  initializer->Fill(key, absl::MakeSpan(values));
  return values;
}

TEST(InitializerTest, DependsOnSeedTableSegmentKeyAndElement) {
  const InitializerConfig config = Uniform(-1, 1);
  const std::vector<float> base = Values(config, 1, 2, 0, 3, 4);
  EXPECT_EQ(Values(config, 1, 2, 0, 3, 4), base);
  EXPECT_NE(Values(config, 9, 2, 0, 3, 4), base);
  EXPECT_NE(Values(config, 1, 9, 0, 3, 4), base);
  EXPECT_NE(Values(config, 1, 2, 1, 3, 4), base);
  EXPECT_NE(Values(config, 1, 2, 0, 9, 4), base);
  EXPECT_NE(base[0], base[1]);
}

TEST(InitializerTest, ElementDoesNotDependOnDim) {
  const std::vector<float> wide = Values(Uniform(-1, 1), 1, 2, 0, 3, 8);
  const std::vector<float> narrow = Values(Uniform(-1, 1), 1, 2, 0, 3, 4);
  EXPECT_EQ(std::vector<float>(wide.begin(), wide.begin() + 4), narrow);
}

TEST(InitializerTest, GivesTheGoldenValuesOfTheFormat) {
  EXPECT_EQ(Values(Uniform(-0.01f, 0.01f), 1, 2, 0, 3, 2),
            Values(InitializerConfig(), 1, 2, 0, 3, 2));
  const std::vector<float> values = Values(Uniform(0, 1), 1, 2, 0, 3, 2);
  EXPECT_FLOAT_EQ(values[0], 0.811992526f);
  EXPECT_FLOAT_EQ(values[1], 0.95244503f);
}

TEST(InitializerTest, UniformStaysInRangeWithTheRightMoments) {
  double sum = 0, squares = 0;
  constexpr int kKeys = 20000;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const float value = Values(Uniform(-2, 4), 7, 0, 0, key, 1)[0];
    ASSERT_GE(value, -2);
    ASSERT_LE(value, 4);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kKeys;
  EXPECT_NEAR(mean, 1, 0.05);
  EXPECT_NEAR(squares / kKeys - mean * mean, 3, 0.1);  // (high - low)^2 / 12
}

TEST(InitializerTest, NormalHasTheRightMoments) {
  double sum = 0, squares = 0;
  constexpr int kKeys = 20000;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const float value = Values(Normal(1, 2), 7, 0, 0, key << 40, 1)[0];
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kKeys;
  EXPECT_NEAR(mean, 1, 0.06);
  EXPECT_NEAR(squares / kKeys - mean * mean, 4, 0.2);
}

TEST(InitializerTest, ConstantIsConstant) {
  InitializerConfig config;
  config.mutable_constant()->set_value(0.5f);
  EXPECT_EQ(Values(config, 1, 2, 0, 3, 3), std::vector<float>(3, 0.5f));
}

TEST(InitializerTest, RefusesConstantsOutOfRange) {
  EXPECT_FALSE(Initializer::Create(Uniform(1, 0), 1, 0, 0).ok());
  EXPECT_FALSE(Initializer::Create(Normal(0, -1), 1, 0, 0).ok());
  EXPECT_FALSE(Initializer::Create(Normal(NAN, 1), 1, 0, 0).ok());
  EXPECT_FALSE(
      Initializer::Create(Uniform(0, std::numeric_limits<float>::infinity()), 1, 0, 0).ok());
}

}  // namespace
}  // namespace satrap
