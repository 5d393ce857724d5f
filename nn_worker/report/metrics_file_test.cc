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

TEST(MetricsFileTest, AFolderThatIsNotThereIsNamed) {
  const auto file = MetricsFile::Create("/nonexistent/run");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("/nonexistent/run/metrics.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace satrap
