#include "nn_worker/backend/benchmark/flags.h"

#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

std::string ErrorOf(const std::string& arg) {
  return std::string(ParseBenchmarkFlags({arg}).status().message());
}

TEST(BenchmarkFlagsTest, WithoutFlagsEverythingIsMeasured) {
  const auto flags = ParseBenchmarkFlags({});
  ASSERT_TRUE(flags.ok());
  EXPECT_EQ(flags->batch, 0);
  EXPECT_EQ(flags->card, 0);
  EXPECT_EQ(flags->only, "");
  EXPECT_FALSE(flags->precision.has_value());
}

TEST(BenchmarkFlagsTest, TakesEachFlag) {
  const auto flags =
      ParseBenchmarkFlags({"--batch=4096", "--card=2", "--only=Fm", "--precision=BF16"});
  ASSERT_TRUE(flags.ok());
  EXPECT_EQ(flags->batch, 4096);
  EXPECT_EQ(flags->card, 2);
  EXPECT_EQ(flags->only, "Fm");
  EXPECT_EQ(flags->precision, NnWorkerConfig::BF16);
}

TEST(BenchmarkFlagsTest, SaysWhatIsWrongAndWhichFlagsThereAre) {
  const std::string known =
      "; the flags are --batch=N, --card=N, --only=TEXT and --precision=F32|TF32|BF16|F16";
  EXPECT_EQ(ErrorOf("--batsh=3"), "unknown argument '--batsh=3'" + known);
  EXPECT_EQ(ErrorOf("Fm"), "unknown argument 'Fm'" + known);
  EXPECT_EQ(ErrorOf("--batch=0"), "--batch: '0' is not a number from 1 to 16777216" + known);
  EXPECT_EQ(ErrorOf("--batch=many"), "--batch: 'many' is not a number from 1 to 16777216" + known);
  EXPECT_EQ(ErrorOf("--card=-1"), "--card: '-1' is not a number from 0 to 1023" + known);
  EXPECT_EQ(ErrorOf("--precision=F8"), "--precision: there is no 'F8'" + known);
}

}  // namespace
}  // namespace satrap
