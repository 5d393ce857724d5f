#include "data_loader/transform/numeric_transform.h"

#include <gtest/gtest.h>

#include <limits>

namespace satrap {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();

NumericTransform Make(NumericConfig::Transform transform) {
  NumericConfig config;
  config.set_transform(transform);
  config.set_min(10);
  config.set_max(20);
  config.set_mean(4);
  config.set_stddev(2);
  config.set_missing_value(-7);
  return NumericTransform(config);
}

TEST(NumericTransformTest, FollowsItsFormula) {
  EXPECT_EQ(Make(NumericConfig::IDENTITY).Apply(3.5f), 3.5f);
  EXPECT_FLOAT_EQ(Make(NumericConfig::LOG1P).Apply(1), 0.69314718f);
  EXPECT_EQ(Make(NumericConfig::LOG1P).Apply(-3), 0.0f);
  EXPECT_FLOAT_EQ(Make(NumericConfig::MIN_MAX).Apply(12.5f), 0.25f);
  EXPECT_FLOAT_EQ(Make(NumericConfig::STANDARDISE).Apply(1), -1.5f);
}

TEST(NumericTransformTest, AMissingValueIsReplacedAfterTheTransform) {
  for (const auto transform : {NumericConfig::IDENTITY, NumericConfig::LOG1P,
                               NumericConfig::MIN_MAX, NumericConfig::STANDARDISE}) {
    EXPECT_EQ(Make(transform).Apply(kNan), -7.0f);
  }
}

TEST(NumericTransformTest, AClampBoundsWhatTheTransformGivesAndNoMissingValue) {
  NumericConfig config;
  config.set_transform(NumericConfig::MIN_MAX);
  config.set_max(10);
  config.set_missing_value(-7);
  EXPECT_EQ(NumericTransform(config).Apply(1e6f), 1e5f) << "nothing is bounded without one";
  config.set_clamp(2);
  const NumericTransform bounded(config);
  EXPECT_EQ(bounded.Apply(1e6f), 2.0f);
  EXPECT_EQ(bounded.Apply(-1e6f), -2.0f);
  EXPECT_EQ(bounded.Apply(15), 1.5f);
  EXPECT_EQ(bounded.Apply(kNan), -7.0f);
  EXPECT_TRUE(bounded.Clamps(20.5f));
  EXPECT_FALSE(bounded.Clamps(20));
}

TEST(NumericToIdTest, BucketizeCountsTheBoundariesNotAbove) {
  FeatureConfig config;
  for (const float boundary : {1.0f, 5.0f, 5.5f})
    config.mutable_bucketize()->add_boundaries(boundary);
  const NumericToId to_id(config);
  EXPECT_EQ(to_id.Apply(0.99f), 0u);
  EXPECT_EQ(to_id.Apply(1), 1u);
  EXPECT_EQ(to_id.Apply(5.2f), 2u);
  EXPECT_EQ(to_id.Apply(1e30f), 3u);
}

TEST(NumericToIdTest, CriteoX4SquaresTheLogarithmAboveTwo) {
  FeatureConfig config;
  config.mutable_criteo_x4();
  const NumericToId to_id(config);
  EXPECT_EQ(to_id.Apply(-1), static_cast<uint64_t>(int64_t{-1}));
  EXPECT_EQ(to_id.Apply(0), 0u);
  EXPECT_EQ(to_id.Apply(2), 2u);
  EXPECT_EQ(to_id.Apply(3), 1u);      // ln(3)^2 = 1.2069
  EXPECT_EQ(to_id.Apply(181), 27u);   // ln(181)^2 = 27.024
  EXPECT_EQ(to_id.Apply(1382), 52u);  // ln(1382)^2 = 52.29
}

}  // namespace
}  // namespace satrap
