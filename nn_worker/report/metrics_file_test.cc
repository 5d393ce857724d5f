#include "nn_worker/report/metrics_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(MetricsFileTest, LinesAreThereWhenItIsClosedAndFollowThoseOfTheLifeBefore) {
  const std::string dir = testing::TempDir() + "/metrics_file_test";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  for (const char* line : {"{\"a\":1}", "{\"a\":2}"}) {
    auto file = MetricsFile::Create(dir);
    ASSERT_TRUE(file.ok()) << file.status();
    (*file)->Append(line);
  }
  std::ifstream text(dir + "/metrics.jsonl");
  std::string first, second;
  std::getline(text, first);
  std::getline(text, second);
  EXPECT_EQ(first, "{\"a\":1}");
  EXPECT_EQ(second, "{\"a\":2}");
}

// The file is a link to /dev/full, where every write fails.
TEST(MetricsFileTest, AFullDiskIsCountedAndEndsNothing) {
  const std::string dir = testing::TempDir() + "/metrics_file_full";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  std::filesystem::create_symlink("/dev/full", dir + "/metrics.jsonl");
  auto file = MetricsFile::Create(dir);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->Append("{}");
  while ((*file)->trouble().dropped == 0) std::this_thread::yield();
  EXPECT_EQ((*file)->trouble().hangs_seconds, 0);
}

TEST(MetricsFileTest, AFileThatIsTooLongBecomesHistory) {
  const std::string dir = testing::TempDir() + "/metrics_history_test";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  auto file = MetricsFile::Create(dir, {/*bytes=*/10, /*older=*/2});
  ASSERT_TRUE(file.ok()) << file.status();
  for (const char* line : {"first line", "second line", "third line", "4"}) (*file)->Append(line);
  file->reset();  // writes what waits
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
}

TEST(MetricsFileTest, WhereTheFolderTakesNoNewFileTheOldOneGoesOn) {
  const std::string dir = testing::TempDir() + "/metrics_without_folder_test";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  auto file = MetricsFile::Create(dir, {/*bytes=*/10, /*older=*/2});
  ASSERT_TRUE(file.ok()) << file.status();
  std::ifstream text(dir + "/metrics.jsonl");
  std::filesystem::remove_all(dir);
  (*file)->Append("a line that is too long");
  (*file)->Append("and one more");
  file->reset();  // writes what waits
  std::string first, second;
  std::getline(text, first);
  std::getline(text, second);
  EXPECT_EQ(first, "a line that is too long");
  EXPECT_EQ(second, "and one more");
}

TEST(MetricsFileTest, AFolderThatIsNotThereIsNamed) {
  const auto file = MetricsFile::Create("/nonexistent/run");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("/nonexistent/run/metrics.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace satrap
