#include "deploy/kafka/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace satrap {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const std::vector<std::string>& args) {
  const auto flags = ParseKafkaFlags(args, {"topic", "rate"});
  if (!flags.ok()) return std::string(flags.status().message());
  return std::string(KafkaConfigOf(*flags).status().message());
}

TEST(KafkaFlagsTest, FlagsStandAnywhereWithTheirValuesBehindThem) {
  const auto flags = ParseKafkaFlags({"a.csv", "--topic", "clicks", "--brokers=b1:1,b2:2", "b.csv",
                                      "--setting", "client.id=x", "--rate=5"},
                                     {"topic", "rate"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(flags->arguments, ElementsAre("a.csv", "b.csv"));
  EXPECT_EQ(flags->Get("topic"), "clicks");
  EXPECT_EQ(flags->Number("rate", 0, 0, 10).value_or(-1), 5);
  const auto config = KafkaConfigOf(*flags);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->brokers(), ElementsAre("b1:1", "b2:2"));
  EXPECT_EQ(config->settings(0).name(), "client.id");
  EXPECT_EQ(config->settings(0).value(), "x");
}

TEST(KafkaFlagsTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(ErrorOf({"--topik", "x"}), HasSubstr("no flag --topik; did you mean --topic?"));
  EXPECT_THAT(ErrorOf({"--topic"}), HasSubstr("--topic needs a value"));
  EXPECT_THAT(ErrorOf({"--topic", "x"}), HasSubstr("--brokers HOST:PORT"));
  EXPECT_THAT(ErrorOf({"--brokers", "b1"}), HasSubstr("must be HOST:PORT, got \"b1\""));
  EXPECT_THAT(ErrorOf({"--brokers", "b1:1", "--setting", "x"}), HasSubstr("NAME=VALUE, got x"));
  EXPECT_THAT(ErrorOf({"--brokers", "b1:1", "--setting", "sasl.password=x"}),
              HasSubstr("file:PATH or env:NAME"));
  const auto flags = ParseKafkaFlags({"--rate", "fast"}, {"rate"});
  EXPECT_THAT(std::string(flags->Number("rate", 0, 0, 10).status().message()),
              HasSubstr("--rate must be a number in [0, 10], got fast"));
}

TEST(TopicOfFlags, IsNeeded) {
  KafkaFlags flags;
  EXPECT_TRUE(absl::IsInvalidArgument(TopicOf(flags).status()));
  flags.values["topic"] = "clicks";
  EXPECT_EQ(*TopicOf(flags), "clicks");
}

TEST(ExitWith, PrintsAnErrorAndReturnsItsCode) {
  EXPECT_EQ(ExitWith(absl::OkStatus(), kFailed), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(ExitWith(absl::NotFoundError("no topic"), kWrongArguments), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: no topic\n");
}

}  // namespace
}  // namespace satrap
