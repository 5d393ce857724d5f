#include "common/base/name_pattern.h"

#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(NamePatternTest, AStarStandsForAnyNumberOfCharacters) {
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("*", "deep/0/weight"));
  EXPECT_TRUE(MatchesPattern("*/bias", "deep/0/bias"));
  EXPECT_TRUE(MatchesPattern("deep/*", "deep/0/bias"));
  EXPECT_TRUE(MatchesPattern("d*/*s", "deep/0/bias"));
  EXPECT_TRUE(MatchesPattern("**bias**", "bias"));
  EXPECT_FALSE(MatchesPattern("*/bias", "deep/0/weight"));
  EXPECT_FALSE(MatchesPattern("*/bias", "deep/bias/0"));
  EXPECT_FALSE(MatchesPattern("*a*b", "b/a"));
}

TEST(NamePatternTest, AStarGivesBackWhatItTookTooMuch) {
  EXPECT_TRUE(MatchesPattern("*ab*abc", "abababc"));
  EXPECT_FALSE(MatchesPattern("*ab*abc", "ababab"));
}

TEST(NamePatternTest, AQuestionMarkStandsForOneCharacter) {
  EXPECT_TRUE(MatchesPattern("deep/?/bias", "deep/1/bias"));
  EXPECT_FALSE(MatchesPattern("deep/?/bias", "deep/10/bias"));
  EXPECT_FALSE(MatchesPattern("?", ""));
}

TEST(NamePatternTest, OtherCharactersStandForThemselves) {
  EXPECT_TRUE(MatchesPattern("", ""));
  EXPECT_TRUE(MatchesPattern("a[b]\\.c", "a[b]\\.c"));
  EXPECT_FALSE(MatchesPattern("a[b]", "ab"));
  EXPECT_FALSE(MatchesPattern("", "a"));
  EXPECT_FALSE(MatchesPattern("a", "ab"));
  EXPECT_FALSE(MatchesPattern("ab", "a"));
  EXPECT_FALSE(MatchesPattern("A", "a"));
}

TEST(NamePatternTest, ManyStarsTakeNoLongerThanTheProductOfTheLengths) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPattern(pattern + "b", std::string(2000, 'a')));
}

}  // namespace
}  // namespace satrap
