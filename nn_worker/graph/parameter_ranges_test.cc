#include "nn_worker/graph/parameter_ranges.h"

#include <string>

#include "common/base/check.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// Three layers, each with a weight of 20 values and a bias of 3. With their gaps these take 32 and
// 16 values.
FlatLayout Layout() {
  FlatLayout layout;
  for (const char* name : {"deep/0.weight", "deep/0.bias", "deep/1.weight", "deep/1.bias",
                           "wide.weight", "wide.bias"}) {
    FlatArray array;
    array.name = name;
    array.begin = layout.size;
    layout.size += array.name.back() == 't' ? 32 : 16;
    layout.arrays.push_back(array);
  }
  return layout;
}

DenseOptimizerConfig Parse(const std::string& text) {
  DenseOptimizerConfig config;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::vector<ParameterRange> RangesOf(const std::string& text) {
  OptimizerRule rule;
  rule.l2 = 0.5f;
  rule.weight_decay = 0.25f;
  return MakeParameterRanges(Layout(), Parse(text), rule).value();
}

TEST(ParameterRangesTest, WithoutSettingsThereIsOneRange) {
  const auto ranges = RangesOf("");
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].begin, 0);
  EXPECT_EQ(ranges[0].size, 144);
  EXPECT_EQ(ranges[0].rule.l2, 0.5f);
  EXPECT_EQ(ranges[0].rule.weight_decay, 0.25f);
  EXPECT_EQ(ranges[0].rule.rate_factor, 1);
}

TEST(ParameterRangesTest, SettingsReplaceThoseOfTheWholeNetwork) {
  const auto ranges = RangesOf(
      "parameters { pattern: 'deep/0.*' learning_rate_factor: 0.1 l2: 0 l1: 2 weight_decay: 3 }");
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].size, 48);
  EXPECT_EQ(ranges[0].rule.rate_factor, 0.1f);
  EXPECT_EQ(ranges[0].rule.l2, 0);
  EXPECT_EQ(ranges[0].rule.l1, 2);
  EXPECT_EQ(ranges[0].rule.weight_decay, 3);
  EXPECT_EQ(ranges[1].begin, 48);
  EXPECT_EQ(ranges[1].size, 96);
  EXPECT_EQ(ranges[1].rule.l2, 0.5f);
}

TEST(ParameterRangesTest, SettingsThatAreAbsentAreThoseOfTheWholeNetwork) {
  const auto ranges = RangesOf("parameters { pattern: '*.bias' learning_rate_factor: 2 }");
  ASSERT_EQ(ranges.size(), 6u);
  EXPECT_EQ(ranges[1].rule.rate_factor, 2);
  EXPECT_EQ(ranges[1].rule.l2, 0.5f);
  EXPECT_EQ(ranges[1].rule.weight_decay, 0.25f);
}

TEST(ParameterRangesTest, TheFirstPatternThatMatchesCounts) {
  const auto ranges = RangesOf(
      "parameters { pattern: 'wide.*' l2: 1 } parameters { pattern: '*' learning_rate_factor: 2 }");
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].size, 96);
  EXPECT_EQ(ranges[0].rule.rate_factor, 2);
  EXPECT_EQ(ranges[1].rule.rate_factor, 1);
  EXPECT_EQ(ranges[1].rule.l2, 1);
}

TEST(ParameterRangesTest, NeighboursWithEqualSettingsAreOneRange) {
  EXPECT_EQ(RangesOf("parameters { pattern: 'deep/0.*' l2: 1 } parameters { pattern: 'deep/?.*' "
                     "l2: 1 weight_decay: 0.25 }")
                .size(),
            2u);
}

TEST(ParameterRangesTest, FrozenParametersAreInNoRange) {
  const auto ranges = RangesOf("parameters { pattern: 'deep/1.*' frozen: true }");
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].size, 48);
  EXPECT_EQ(ranges[1].begin, 96);
  EXPECT_EQ(ranges[1].size, 48);
  EXPECT_TRUE(RangesOf("parameters { pattern: '*' frozen: true }").empty());
}

TEST(ParameterRangesTest, APatternThatMatchesNothingIsAnErrorThatNamesTheParameters) {
  const auto ranges = MakeParameterRanges(
      Layout(), Parse("parameters { pattern: '*' } parameters { pattern: 'deap/*' }"), {});
  EXPECT_EQ(ranges.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ranges.status().message(),
            "dense_optimizer.parameters[1].pattern: 'deap/*' matches no parameter; there are "
            "deep/0.weight, deep/0.bias, deep/1.weight, deep/1.bias, wide.weight, wide.bias");
}

}  // namespace
}  // namespace satrap
