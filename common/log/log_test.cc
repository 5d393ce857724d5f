#include "common/log/log.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class LogTest : public testing::Test {
 protected:
  std::string Written() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  Logger Make(LogLevel level) { return *Logger::Create("embedding_ps/2", level, file_); }

  const std::string file_ = testing::TempDir() + "/log_test_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() + ".log";
  ~LogTest() override { std::filesystem::remove(file_); }
};

TEST_F(LogTest, WritesTimeLevelReplicaTextAndFields) {
  Make(LogLevel::kInfo)
      .Info("part accepted", {{"lane", 2}, {"weight", 1.5}, {"last", true}, {"name", "a"}});
  EXPECT_THAT(Written(),
              MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+\\.[0-9]+Z info    "
                           "embedding_ps/2 part accepted lane=2 weight=1.5 last=true name=a\n"));
}

TEST_F(LogTest, QuotesWhatWouldNotBeOneWord) {
  Make(LogLevel::kInfo)
      .Info("x", {{"a", "two words"}, {"b", ""}, {"c", std::string("line\nbreak \"q\"")}});
  EXPECT_THAT(Written(), HasSubstr("x a=\"two words\" b=\"\" c=\"line\\nbreak \\\"q\\\"\"\n"));
}

TEST_F(LogTest, LeavesOutWhatIsBelowItsLevel) {
  const Logger logger = Make(LogLevel::kWarning);
  logger.Debug("d");
  logger.Info("i");
  logger.Warning("w");
  logger.Error("e {} %s");  // not a format string
  EXPECT_THAT(Written(), Not(HasSubstr("embedding_ps/2 i")));
  EXPECT_THAT(Written(), Not(HasSubstr("embedding_ps/2 d")));
  EXPECT_THAT(Written(), HasSubstr("embedding_ps/2 w\n"));
  EXPECT_THAT(Written(), HasSubstr("embedding_ps/2 e {} %s\n"));
}

TEST_F(LogTest, AppendsToAFileThatIsThere) {
  Make(LogLevel::kInfo).Info("first run");
  Make(LogLevel::kInfo).Info("second run");
  EXPECT_THAT(Written(), HasSubstr("first run"));
  EXPECT_THAT(Written(), HasSubstr("second run"));
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsAnError) {
  Make(LogLevel::kInfo).Info("a file, not a folder");
  EXPECT_EQ(Logger::Create("x/0", LogLevel::kInfo, file_ + "/log").status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(LogTest, ALoggerMadeByDefaultWritesNothing) { Logger().Error("nobody hears it"); }

}  // namespace
}  // namespace satrap
