#include "nn_worker/card_flag.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"

namespace satrap {
namespace {

std::string ErrorOf(bool program_has_cards, const std::string& arg) {
  absl::optional<int> card;
  const std::vector<Flag> flags = {CardFlag(program_has_cards, &card)};
  return std::string(ParseOnlyFlags({arg}, flags).message());
}

TEST(CardFlagTest, WithoutItTheCardIsTheFirst) {
  absl::optional<int> card;
  const std::vector<Flag> flags = {CardFlag(/*program_has_cards=*/true, &card)};
  ASSERT_TRUE(ParseOnlyFlags({}, flags).ok());
  NnWorkerConfig config;
  config.set_device(NnWorkerConfig::CUDA);
  EXPECT_EQ(CardOfRank(card, config).value(), 0);
  ASSERT_TRUE(ParseOnlyFlags({"--card", "3"}, flags).ok());
  EXPECT_EQ(CardOfRank(card, config).value(), 3);
}

TEST(CardFlagTest, WhatIsNoCardIsNamed) {
  EXPECT_EQ(ErrorOf(true, "--card=-1"), "--card -1 is not a whole number >= 0");
  EXPECT_EQ(ErrorOf(true, "--card=x"), "--card x is not a whole number >= 0");
  EXPECT_EQ(ErrorOf(false, "--card=x"), "--card x is not a whole number >= 0");
}

TEST(CardFlagTest, AProgramOrAJobWithoutCardsRefusesIt) {
  EXPECT_EQ(ErrorOf(false, "--card=1"),
            "--card 1: this program has no cards; run nn_worker_cuda, or leave --card out");
  NnWorkerConfig config;
  config.set_device(NnWorkerConfig::HOST);
  EXPECT_EQ(CardOfRank(0, config).status(),
            absl::InvalidArgumentError("--card=0: the job's nn_worker.device is HOST, which has no "
                                       "cards; leave --card out"));
  EXPECT_EQ(CardOfRank(absl::nullopt, config).value(), 0);
}

}  // namespace
}  // namespace satrap
