#include "deploy/kafka/kafka_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace satrap {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<KafkaConfig> ConfigOf(const std::vector<std::string>& args) {
  ClusterFlags flags;
  const absl::Status status = ParseOnlyFlags(args, flags.Table());
  if (!status.ok()) return status;
  return flags.Config();
}

std::string ErrorOf(const std::vector<std::string>& args) {
  return std::string(ConfigOf(args).status().message());
}

TEST(ClusterFlagsTest, NameBrokersAndSettings) {
  const auto config = ConfigOf({"--brokers=b1:1,b2:2", "--setting", "client.id=x"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->brokers(), ElementsAre("b1:1", "b2:2"));
  EXPECT_EQ(config->settings(0).name(), "client.id");
  EXPECT_EQ(config->settings(0).value(), "x");
}

TEST(ClusterFlagsTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("--brokers is missing; give --brokers HOST:PORT"));
  EXPECT_THAT(ErrorOf({"--brokers", "b1"}), HasSubstr("must be HOST:PORT, got \"b1\""));
  EXPECT_THAT(ErrorOf({"--brokers", "b1:1", "--setting", "x"}), HasSubstr("NAME=VALUE, got x"));
  EXPECT_THAT(ErrorOf({"--brokers", "b1:1", "--setting", "sasl.password=x"}),
              HasSubstr("file:PATH or env:NAME"));
}

TEST(ExitWith, PrintsAnErrorAndReturnsItsCode) {
  EXPECT_EQ(ExitWith(absl::OkStatus(), kFailed), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(ExitWith(absl::NotFoundError("no topic"), kWrongArguments), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: no topic\n");
}

}  // namespace
}  // namespace satrap
