#include "common/kafka/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"

namespace satrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

KafkaConfig Config(const std::string& text) {
  KafkaConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("brokers: \"b1:9092\" brokers: \"b2:9092\" topics: \"clicks\" ", text),
      &config));
  return config;
}

std::string ProblemsOf(const KafkaConfig& config) {
  Problems problems;
  CheckKafkaConfig(config, "kafka", &problems);
  return std::string(problems.ToStatus().message());
}

TEST(KafkaSettingsTest, AReaderSeesCommittedMessagesAndTheEndsOfPartitionsAndNeverJumps) {
  const auto settings = ResolveKafkaSettings(Config(""), KafkaRole::kReader);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->at("bootstrap.servers"), "b1:9092,b2:9092");
  EXPECT_EQ(settings->at("group.id"), "satrap");
  EXPECT_EQ(settings->at("isolation.level"), "read_committed");
  EXPECT_EQ(settings->at("auto.offset.reset"), "error");
  EXPECT_EQ(settings->at("enable.partition.eof"), "true");
  EXPECT_EQ(settings->at("enable.auto.commit"), "false");
  EXPECT_EQ(settings->at("enable.auto.offset.store"), "false");
  EXPECT_EQ(settings->count("enable.idempotence"), 0u);
}

TEST(KafkaSettingsTest, AProducerIsIdempotentAndWaitsForAllReplicas) {
  const auto settings = ResolveKafkaSettings(Config(""), KafkaRole::kProducer);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->at("enable.idempotence"), "true");
  EXPECT_EQ(settings->at("acks"), "all");
  EXPECT_EQ(settings->count("group.id"), 0u);
}

TEST(KafkaSettingsTest, AProducerGivesAMessageUpAfterBrokerWait) {
  const auto ours = ResolveKafkaSettings(Config("broker_wait_seconds: 42"), KafkaRole::kProducer);
  EXPECT_EQ(ours->at("message.timeout.ms"), "42000");
  const auto job = ResolveKafkaSettings(
      Config("settings { name: 'delivery.timeout.ms' value: '5000' }"), KafkaRole::kProducer);
  EXPECT_EQ(job->count("message.timeout.ms"), 0u);
  EXPECT_EQ(job->at("delivery.timeout.ms"), "5000");
}

TEST(KafkaSettingsTest, PartitionsShareTheBytesOfTheQueue) {
  const auto one = ResolveKafkaSettings(Config(""), KafkaRole::kReader, 1);
  const auto four = ResolveKafkaSettings(Config(""), KafkaRole::kReader, 4);
  const auto many = ResolveKafkaSettings(Config(""), KafkaRole::kReader, 10000);
  EXPECT_EQ(one->at("queued.max.messages.kbytes"), "16384");
  EXPECT_EQ(one->at("fetch.message.max.bytes"), "1048576");
  EXPECT_EQ(four->at("queued.max.messages.kbytes"), "4096");
  EXPECT_EQ(many->at("queued.max.messages.kbytes"), "64");
  EXPECT_EQ(many->at("fetch.message.max.bytes"), "65536");
}

TEST(KafkaSettingsTest, OtherSettingsArePassedOnAndReplaceOurDefaults) {
  const auto settings = ResolveKafkaSettings(
      Config("settings { name: 'security.protocol' value: 'ssl' } "
             "settings { name: 'client.id' value: 'mine' } "
             "settings { name: 'max.partition.fetch.bytes' value: '2000000' }"),
      KafkaRole::kReader);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->at("security.protocol"), "ssl");
  EXPECT_EQ(settings->at("client.id"), "mine");
  EXPECT_EQ(settings->at("max.partition.fetch.bytes"), "2000000");
  EXPECT_EQ(settings->count("fetch.message.max.bytes"), 0u);
}

// Closing a client takes as long as a fetch may wait at the broker. Therefore that wait must be
// short.
TEST(KafkaSettingsTest, AFetchWaitsShortlyForNewMessages) {
  EXPECT_EQ(ResolveKafkaSettings(Config(""), KafkaRole::kReader)->at("fetch.wait.max.ms"), "100");
  const auto job = ResolveKafkaSettings(
      Config("settings { name: 'fetch.wait.max.ms' value: '500' }"), KafkaRole::kReader);
  EXPECT_EQ(job->at("fetch.wait.max.ms"), "500");
}

TEST(KafkaSettingsTest, ForcedSettingsAreRefusedByNameWithTheReason) {
  for (const char* name :
       {"isolation.level", "auto.offset.reset", "enable.partition.eof", "enable.auto.commit",
        "auto.offset.store", "enable.auto.offset.store", "group.id", "bootstrap.servers", "acks",
        "enable.idempotence", "queued.max.messages.kbytes", "plugin.library.paths"}) {
    const KafkaConfig config = Config(absl::StrCat("settings { name: '", name, "' value: 'x' }"));
    EXPECT_THAT(ProblemsOf(config),
                HasSubstr(absl::StrCat("kafka.settings[name=", name, "]: must not be set: ")));
    EXPECT_FALSE(ResolveKafkaSettings(config, KafkaRole::kReader).ok());
  }
}

TEST(KafkaSettingsTest, NamesAndValuesThatLibrdkafkaRefusesAreNamed) {
  EXPECT_THAT(ProblemsOf(Config("settings { name: 'security.protokol' value: 'ssl' }")),
              HasSubstr("kafka.settings[name=security.protokol]: No such configuration property"));
  EXPECT_THAT(ProblemsOf(Config("settings { name: 'security.protocol' value: 'tls' }")),
              HasSubstr("Invalid value \"tls\""));
}

TEST(KafkaSettingsTest, PlainSecretsAreRefusedAndNotRepeated) {
  for (const char* name : {"sasl.password", "ssl.key.password", "ssl.keystore.password",
                           "ssl.key.pem", "sasl.oauthbearer.client.secret"}) {
    const std::string problems =
        ProblemsOf(Config(absl::StrCat("settings { name: '", name, "' value: 'hunter2' }")));
    EXPECT_THAT(problems, AllOf(HasSubstr(name), HasSubstr("file:PATH or env:NAME"),
                                Not(HasSubstr("hunter2"))));
    EXPECT_EQ(
        ProblemsOf(Config(absl::StrCat("settings { name: '", name, "' value: 'file:secret' }"))),
        "");
  }
}

TEST(KafkaSettingsTest, ASecretComesFromAFileWithoutItsLineEnd) {
  const std::string path = absl::StrCat(testing::TempDir(), "/kafka_settings_secret");
  std::ofstream(path) << "hunter2\n";
  const auto settings = ResolveKafkaSettings(
      Config(absl::StrCat("settings { name: 'sasl.password' value: 'file:", path, "' }")),
      KafkaRole::kReader);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->at("sasl.password"), "hunter2");
}

TEST(KafkaSettingsTest, ASecretThatIsNotThereIsAnErrorThatNamesSettingAndPlace) {
  const auto file = ResolveKafkaSettings(
      Config("settings { name: 'sasl.password' value: 'file:not/there' }"), KafkaRole::kReader);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(file.status().message()),
              AllOf(HasSubstr("sasl.password"), HasSubstr("not/there")));
  const auto variable = ResolveKafkaSettings(
      Config("settings { name: 'sasl.password' value: 'env:SATRAP_NOT_SET' }"), KafkaRole::kReader);
  EXPECT_EQ(variable.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(variable.status().message()),
              AllOf(HasSubstr("sasl.password"), HasSubstr("SATRAP_NOT_SET")));
}

TEST(KafkaSettingsTest, AVariableIsReadFromTheEnvironmentOfTheProcessStart) {
  // Bazel sets a variable in the environment of every test, from which GoogleTest takes its
  // temporary folder. The setting refers to that variable.
  EXPECT_THAT(testing::TempDir(),
              testing::StartsWith(ResolveKafkaValue("env:TEST_TMPDIR").value_or("none")));
  EXPECT_EQ(ResolveKafkaValue("plain").value_or("none"), "plain");
}

TEST(KafkaConfigTest, StartAndEndAreOneOfAPointATimeAndOffsets) {
  EXPECT_EQ(ProblemsOf(Config("start { at: LATEST } end { at: AT_START }")), "");
  EXPECT_EQ(ProblemsOf(Config("start { time: '2026-05-01T00:00:00Z' } "
                              "end { offsets { topic: 'clicks' partition: 0 offset: 7 } }")),
            "");
  EXPECT_THAT(ProblemsOf(Config("start { at: LATEST time: '2026-05-01T00:00:00Z' }")),
              HasSubstr("kafka.start: must have exactly one of"));
  EXPECT_THAT(ProblemsOf(Config("end { }")), HasSubstr("kafka.end: must have exactly one of"));
  EXPECT_THAT(ProblemsOf(Config("start { time: 'yesterday' }")),
              HasSubstr("\"yesterday\" is not a time such as 2026-05-01T00:00:00Z"));
  EXPECT_THAT(ProblemsOf(Config("start { offsets { topic: 'clicks' } }")),
              AllOf(HasSubstr("kafka.start.offsets[0].partition: must be given"),
                    HasSubstr("kafka.start.offsets[0].offset: must be given")));
}

TEST(KafkaConfigTest, EveryProblemIsReportedWithItsPath) {
  KafkaConfig config =
      Config("topics: 'clicks' dead_letter_topic: 'clicks' columns { from: HEADER } group_id: ''");
  config.set_brokers(1, "kafka://b2");
  const std::string problems = ProblemsOf(config);
  for (const char* path : {"kafka.brokers[1]: must be HOST:PORT", "kafka.topics[1]: names clicks",
                           "kafka.dead_letter_topic", "kafka.columns[0].name",
                           "kafka.columns[0].header", "kafka.group_id"}) {
    EXPECT_THAT(problems, HasSubstr(path));
  }
  EXPECT_THAT(ProblemsOf(KafkaConfig()),
              AllOf(HasSubstr("kafka.brokers: must name"), HasSubstr("kafka.topics: must name")));
}

TEST(KafkaConfigTest, NamesThatKafkaCannotHaveAreRefused) {
  KafkaConfig config = Config("topics: 'Clicks.of_2026-05'");
  EXPECT_EQ(ProblemsOf(config), "");
  for (const std::string& name : {std::string("cli\0cks", 7), std::string("^click.*"),
                                  std::string("a b"), std::string(".."), std::string(250, 'x')}) {
    config.set_topics(0, name);
    config.set_dead_letter_topic(name);
    EXPECT_THAT(ProblemsOf(config), AllOf(HasSubstr("kafka.topics[0]: must be at most 249 letters"),
                                          HasSubstr("kafka.dead_letter_topic: must be at most")))
        << name;
  }
  for (const std::string& broker : {std::string("b\0:9092", 7), std::string("a b:9092")}) {
    config.set_brokers(0, broker);
    EXPECT_THAT(ProblemsOf(config), HasSubstr("kafka.brokers[0]: must be HOST:PORT"));
  }
}

TEST(KafkaConfigTest, TimesAreMillisecondsSince1970) {
  EXPECT_EQ(ParseKafkaTime("1970-01-01T00:00:01.5Z").value_or(-1), 1500);
  EXPECT_EQ(ParseKafkaTime("1970-01-01T01:00:00+01:00").value_or(-1), 0);
}

}  // namespace
}  // namespace satrap
