#include "nn_worker/device/cuda/card_check.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using testing::HasSubstr;

CardAnswers AnH100() {
  CardAnswers answers;
  answers.program_version = 13000;
  answers.driver_version = 13000;
  answers.num_cards = 2;
  answers.card = 1;
  answers.name = "NVIDIA H100";
  answers.major = 9;
  return answers;
}

std::string Refusal(const CardAnswers& answers) {
  const absl::Status status = CheckCard(answers);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(CardCheckTest, ACardFromEightOnIsAccepted) {
  CardAnswers answers = AnH100();
  EXPECT_TRUE(CheckCard(answers).ok());
  answers.major = 8;
  EXPECT_TRUE(CheckCard(answers).ok());
}

TEST(CardCheckTest, EveryDriverOfTheMajorVersionIsAccepted) {
  CardAnswers answers = AnH100();
  answers.program_version = 13020;
  EXPECT_TRUE(CheckCard(answers).ok());
  answers.driver_version = 14000;
  EXPECT_TRUE(CheckCard(answers).ok());
}

TEST(CardCheckTest, WithoutADriverItSaysWhichToInstall) {
  CardAnswers answers;
  answers.program_version = 13000;
  answers.error = "the words of CUDA, which are about a version";
  EXPECT_EQ(
      Refusal(answers),
      "cannot train on a GPU: this machine has no NVIDIA driver; install 580 or later (CUDA of "
      "the driver: none; of this program: 13.0)");
}

TEST(CardCheckTest, AnOlderDriverIsNamedWithItsVersion) {
  CardAnswers answers = AnH100();
  answers.driver_version = 12040;
  EXPECT_EQ(
      Refusal(answers),
      "cannot train on a GPU: the NVIDIA driver is too old; install 580 or later (CUDA of the "
      "driver: 12.4; of this program: 13.0)");
}

TEST(CardCheckTest, AnyOtherErrorIsInTheWordsOfCuda) {
  CardAnswers answers = AnH100();
  answers.error = "system not yet initialized";
  EXPECT_THAT(Refusal(answers), HasSubstr("system not yet initialized"));
}

TEST(CardCheckTest, ACardThatIsNotThereIsNamed) {
  CardAnswers answers = AnH100();
  answers.card = 2;
  EXPECT_THAT(Refusal(answers), HasSubstr("there is no card 2; the driver shows 2"));
  answers.card = -1;
  EXPECT_THAT(Refusal(answers), HasSubstr("there is no card -1"));
  answers.card = 0;
  answers.num_cards = 0;
  EXPECT_THAT(Refusal(answers), HasSubstr("there is no card 0; the driver shows 0"));
}

TEST(CardCheckTest, ACardThatIsTooOldIsNamed) {
  CardAnswers answers = AnH100();
  answers.name = "Tesla T4";
  answers.major = 7;
  answers.minor = 5;
  EXPECT_THAT(Refusal(answers), HasSubstr("card 1, Tesla T4, has compute capability 7.5, but the "
                                          "kernels need 8.0 or later"));
}

}  // namespace
}  // namespace satrap
