#include "common/file/file_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

class FileHistoryTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "file_history.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name = "log") const { return folder_ + "/" + name; }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::app) << text;
  }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::string folder_;
};

TEST_F(FileHistoryTest, AFileGetsTheNameOfTheNewestOfItsHistory) {
  for (const char* text : {"a", "b", "c", "d"}) {
    Write(Path(), text);
    ASSERT_TRUE(MoveToHistory(Path(), 2).ok());
  }
  EXPECT_FALSE(fs::exists(Path()));
  EXPECT_EQ(Read(Path("log.1")), "d");
  EXPECT_EQ(Read(Path("log.2")), "c");
  EXPECT_FALSE(fs::exists(Path("log.3"))) << "older ones are gone";
}

TEST_F(FileHistoryTest, AFileOfAnotherProcessIsCopiedAndGoesOnEmpty) {
  const int writer = open(Path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  ASSERT_GE(writer, 0);
  const FileLimits limits{/*bytes=*/3, /*older=*/2};
  ASSERT_EQ(write(writer, "abc", 3), 3);
  ASSERT_TRUE(CutForeignFile(Path(), limits).ok());
  EXPECT_FALSE(fs::exists(Path("log.1"))) << "it is not too large";
  ASSERT_EQ(write(writer, "d", 1), 1);
  ASSERT_TRUE(CutForeignFile(Path(), limits).ok());
  ASSERT_EQ(write(writer, "e", 1), 1);
  EXPECT_EQ(Read(Path("log.1")), "abcd");
  EXPECT_EQ(Read(Path()), "e") << "the writer goes on";
  for (const char* text : {"fgh", "ijkl"}) {
    ASSERT_EQ(write(writer, text, strlen(text)), static_cast<ssize_t>(strlen(text)));
    ASSERT_TRUE(CutForeignFile(Path(), limits).ok());
  }
  close(writer);
  EXPECT_EQ(Read(Path("log.1")), "ijkl");
  EXPECT_EQ(Read(Path("log.2")), "efgh") << "the older ones have moved on";
  EXPECT_FALSE(fs::exists(Path("log.3")));
}

TEST_F(FileHistoryTest, WhatIsNotThereIsAnErrorThatNamesIt) {
  EXPECT_NE(MoveToHistory(Path("none"), 2).message().find("/none"), std::string::npos);
  EXPECT_NE(CutForeignFile(Path("none"), {}).message().find("/none"), std::string::npos);
}

}  // namespace
}  // namespace satrap
