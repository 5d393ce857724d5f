#include "nn_worker/card_flag.h"

#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(CardFlagTest, IsTakenOutOfTheOthersInOneWordOrTwo) {
  for (const std::vector<std::string>& flag :
       {std::vector<std::string>{"--card=2"}, std::vector<std::string>{"--card", "2"}}) {
    std::vector<std::string> args = {"--role_index=3", "--coordinator=c"};
    args.insert(args.begin() + 1, flag.begin(), flag.end());
    const auto card = TakeCardFlag(/*program_has_cards=*/true, &args);
    ASSERT_TRUE(card.ok()) << card.status();
    EXPECT_EQ(*card, 2);
    EXPECT_THAT(args, ElementsAre("--role_index=3", "--coordinator=c"));
  }
}

TEST(CardFlagTest, WithoutItTheCardIsTheFirst) {
  std::vector<std::string> args = {"--coordinator=c"};
  const auto card = TakeCardFlag(/*program_has_cards=*/true, &args);
  ASSERT_TRUE(card.ok()) << card.status();
  EXPECT_EQ(*card, absl::nullopt);
  EXPECT_EQ(args.size(), 1u);
  NnWorkerConfig config;
  config.set_device(NnWorkerConfig::CUDA);
  EXPECT_EQ(CardOfRank(*card, config).value(), 0);
  EXPECT_EQ(CardOfRank(3, config).value(), 3);
}

TEST(CardFlagTest, TheValueOfAnotherFlagIsNoFlag) {
  const std::vector<std::string> given = {"--advertise", "--card=1", "--coordinator", "c"};
  std::vector<std::string> args = given;
  EXPECT_EQ(TakeCardFlag(/*program_has_cards=*/true, &args).value(), absl::nullopt);
  EXPECT_THAT(args, ElementsAreArray(given));
}

TEST(CardFlagTest, WhatIsNoCardIsNamed) {
  for (const char* wrong : {"--card=-1", "--card=x", "--card="}) {
    std::vector<std::string> args = {wrong};
    const auto card = TakeCardFlag(/*program_has_cards=*/true, &args);
    EXPECT_EQ(card.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(card.status().message(), HasSubstr("is not a number >= 0"));
  }
  std::vector<std::string> twice = {"--card", "1", "--card=1"};
  EXPECT_THAT(TakeCardFlag(true, &twice).status().message(), HasSubstr("twice"));
  std::vector<std::string> no_value = {"--coordinator=c", "--card"};
  EXPECT_EQ(TakeCardFlag(true, &no_value).status(),
            absl::InvalidArgumentError("--card needs a value"));
}

TEST(CardFlagTest, AProgramOrAJobWithoutCardsRefusesIt) {
  std::vector<std::string> args = {"--card", "1"};
  EXPECT_EQ(TakeCardFlag(/*program_has_cards=*/false, &args).status(),
            absl::InvalidArgumentError("--card=1: this program has no cards; run nn_worker_cuda, "
                                       "or leave --card out"));
  std::vector<std::string> none = {"--coordinator=c"};
  EXPECT_TRUE(TakeCardFlag(/*program_has_cards=*/false, &none).ok());

  NnWorkerConfig config;
  config.set_device(NnWorkerConfig::HOST);
  EXPECT_EQ(CardOfRank(0, config).status(),
            absl::InvalidArgumentError("--card=0: the job's nn_worker.device is HOST, which has no "
                                       "cards; leave --card out"));
  EXPECT_EQ(CardOfRank(absl::nullopt, config).value(), 0);
}

}  // namespace
}  // namespace satrap
