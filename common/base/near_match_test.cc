#include "common/base/near_match.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(NearMatch, IsTheNearestCandidate) {
  EXPECT_EQ(NearMatch("demo_rl", {"demo", "demo_lr", "adult_fm"}), "demo_lr");
  EXPECT_EQ(NearMatch("epocs", {"seed", "epochs"}), "epochs");
}

TEST(NearMatch, NeedsLikeness) {
  EXPECT_EQ(NearMatch("xyz", {"fm", "lr"}), "");
  EXPECT_EQ(NearMatch("abcdefg", {"abcd"}), "") << "three edits are too many for a short word";
  EXPECT_EQ(NearMatch("abcdefgh", {"abcde"}), "abcde");
  EXPECT_EQ(NearMatch("anything", {}), "");
}

TEST(DidYouMean, EndsAMessageOrIsNothing) {
  EXPECT_EQ(DidYouMean("raport", {"report"}, "--"), "; did you mean --report?");
  EXPECT_EQ(DidYouMean("raport", {"seed"}, "--"), "");
}

}  // namespace
}  // namespace satrap
