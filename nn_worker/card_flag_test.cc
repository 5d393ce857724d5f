#include "nn_worker/card_flag.h"

#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CardFlagTest, IsTakenOutOfTheOthers) {
  std::vector<std::string> args = {"--role_index=3", "--card=2", "--coordinator=c"};
  const auto card = TakeCardFlag(&args);
  ASSERT_TRUE(card.ok()) << card.status();
  EXPECT_EQ(*card, 2);
  EXPECT_THAT(args, ElementsAre("--role_index=3", "--coordinator=c"));
}

TEST(CardFlagTest, WithoutItTheCardIsTheFirst) {
  std::vector<std::string> args = {"--coordinator=c"};
  EXPECT_EQ(TakeCardFlag(&args).value(), 0);
  EXPECT_EQ(args.size(), 1u);
}

TEST(CardFlagTest, WhatIsNoCardIsNamed) {
  for (const char* wrong : {"--card=-1", "--card=x", "--card="}) {
    std::vector<std::string> args = {wrong};
    const auto card = TakeCardFlag(&args);
    EXPECT_EQ(card.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(card.status().message(), HasSubstr("is not a number >= 0"));
  }
  std::vector<std::string> twice = {"--card=1", "--card=1"};
  EXPECT_THAT(TakeCardFlag(&twice).status().message(), HasSubstr("twice"));
}

}  // namespace
}  // namespace satrap
