#include "common/config/warm_start.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(WarmStartTest, WithoutPatternsEverythingIsTaken) {
  EXPECT_TRUE(TakesName(WarmStartConfig(), "anything"));
}

TEST(WarmStartTest, TakesWhatMatchesOneOfThePatterns) {
  WarmStartConfig config;
  config.add_only("items");
  config.add_only("deep/*.weight");
  EXPECT_TRUE(TakesName(config, "items"));
  EXPECT_TRUE(TakesName(config, "deep/linear_0.weight"));
  EXPECT_FALSE(TakesName(config, "deep/linear_0.bias"));
  EXPECT_FALSE(TakesName(config, "users"));
}

TEST(WarmStartTest, APatternThatMatchesNothingIsAnError) {
  WarmStartConfig config;
  config.add_only("items");
  config.add_only("itens*");
  EXPECT_EQ(CheckPatterns(config, {"items", "deep.weight"}, "runs/a").message(),
            "warm_start.only[1]: 'itens*' matches no table and no dense parameter, neither of the "
            "job nor of the model in runs/a");
  EXPECT_TRUE(CheckPatterns(config, {"items", "itens_2"}, "runs/a").ok());
}

}  // namespace
}  // namespace satrap
