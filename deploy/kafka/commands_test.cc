// Tests the error messages for wrong command lines. No test here contacts a broker; tests/kafka
// runs the commands.

#include "deploy/kafka/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

using testing::HasSubstr;

// Returns what the command prints to stderr. REQUIRES: the command returns `code`
std::string ErrorOf(int (*command)(const std::vector<std::string>&), int code,
                    const std::vector<std::string>& args) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(command(args), code);
  return testing::internal::GetCapturedStderr();
}

std::string WriteFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << content;
  return path;
}

// No broker listens at this address.
constexpr char kBrokers[] = "--brokers=127.0.0.1:1";

TEST(ProduceCommand, NeedsFilesATopicAndBrokers) {
  EXPECT_THAT(ErrorOf(ProduceCommand, 2, {"a.csv", "--topic=t"}),
              HasSubstr("error: --brokers is missing; give --brokers HOST:PORT[,HOST:PORT...]\n"));
  EXPECT_THAT(ErrorOf(ProduceCommand, 2, {"a.csv", "--topic=t", "--brokers=b1"}),
              HasSubstr("must be HOST:PORT, got \"b1\""));
  EXPECT_THAT(ErrorOf(ProduceCommand, 2, {"a.csv", kBrokers}), HasSubstr("--topic is missing"));
  EXPECT_THAT(ErrorOf(ProduceCommand, 2, {"--topic=t", kBrokers}), HasSubstr("no FILE is given"));
  EXPECT_THAT(ErrorOf(ProduceCommand, 2, {"a.csv", "--topik=t", kBrokers}),
              HasSubstr("unknown flag --topik; did you mean --topic?"));
}

TEST(ProduceCommand, NamesAColumnThatThereIsNot) {
  const std::string file = WriteFile("lines", "1\t2\n");
  EXPECT_THAT(ErrorOf(ProduceCommand, 1, {file, "--topic=t", kBrokers, "--key=user"}),
              HasSubstr("there is no column user; without --job, name a column by its number, "
                        "counted from 1"));
}

TEST(ProduceCommand, NamesAFileThatCannotBeRead) {
  for (const std::string& file : {std::string("nowhere.csv"), testing::TempDir()}) {
    EXPECT_EQ(ErrorOf(ProduceCommand, 1, {file, "--topic=t", kBrokers}),
              absl::StrCat("error: '", file, "' is not a file that can be read\n"));
  }
}

TEST(ProduceCommand, ASyntheticLogIsThatOfAJobThatHasOne) {
  const std::string job = WriteFile("job.textproto", R"(
      data { libsvm {} train_files: 'a' features { name: 'features' table: 'ids' } }
      tables { name: 'ids' id: 0 segments { name: 'linear' dim: 1 } }
      model { layers { name: 'logit' inputs: '*.linear' sum {} } })");
  const std::string synthetic = absl::StrCat("--synthetic=", job);
  EXPECT_THAT(ErrorOf(ProduceCommand, 2, {synthetic, "--topic=t", kBrokers}),
              HasSubstr("has no data.synthetic"));
  EXPECT_THAT(ErrorOf(ProduceCommand, 2, {"a.csv", synthetic, "--topic=t", kBrokers}),
              HasSubstr("either FILE or --synthetic is given, not both"));
  EXPECT_THAT(ErrorOf(ProduceCommand, 2, {synthetic, kBrokers}), HasSubstr("--topic is missing"));
  EXPECT_THAT(ErrorOf(ProduceCommand, 2, {"--synthetic=nowhere", "--topic=t", kBrokers}),
              HasSubstr("nowhere"));
}

TEST(TopicsCommand, MakesOneTopicAtATime) {
  EXPECT_THAT(ErrorOf(TopicsCommand, 2, {"--make=4", kBrokers}), HasSubstr("takes one TOPIC"));
  EXPECT_THAT(ErrorOf(TopicsCommand, 2, {"t", "--make=0", kBrokers}),
              HasSubstr("--make 0 is not a whole number in [1, 10000]"));
  EXPECT_THAT(ErrorOf(TopicsCommand, 2, {"t"}), HasSubstr("--brokers HOST:PORT"));
}

}  // namespace
}  // namespace satrap
