#include "nn_worker/report/metrics_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(MetricsFileTest, LinesAreThereAtOnceAndStay) {
  const std::string dir = testing::TempDir() + "/metrics_file_test";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  auto file = MetricsFile::Create(dir);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->Append("{\"a\":1}");
  (*file)->Append("{\"a\":2}");
  std::ifstream text(dir + "/metrics.jsonl");
  std::string first, second;
  std::getline(text, first);
  std::getline(text, second);
  EXPECT_EQ(first, "{\"a\":1}");
  EXPECT_EQ(second, "{\"a\":2}");
}

TEST(MetricsFileTest, AFileThatIsTooLongBecomesHistory) {
  const std::string dir = testing::TempDir() + "/metrics_history_test";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  auto file = MetricsFile::Create(dir, {/*bytes=*/10, /*older=*/2});
  ASSERT_TRUE(file.ok()) << file.status();
  for (const char* line : {"first line", "second line", "third line", "4"}) (*file)->Append(line);
  const auto first_line = [&dir](const std::string& name) {
    std::ifstream text(dir + "/" + name);
    std::string line;
    std::getline(text, line);
    return line;
  };
  EXPECT_EQ(first_line("metrics.jsonl"), "4");
  EXPECT_EQ(first_line("metrics.jsonl.1"), "third line");
  EXPECT_EQ(first_line("metrics.jsonl.2"), "second line");
  EXPECT_FALSE(std::filesystem::exists(dir + "/metrics.jsonl.3"));
  // Where the folder takes no new file, the old one goes on.
  std::filesystem::remove_all(dir);
  (*file)->Append("a line that is too long");
  (*file)->Append("and one more");
}

TEST(MetricsFileTest, AFolderThatIsNotThereIsNamed) {
  const auto file = MetricsFile::Create("/nonexistent/run");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("/nonexistent/run/metrics.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace satrap
