#include "common/file/file_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/file/file_system.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

class FileHistoryTest : public testing::Test {
 protected:
  std::string Path(const std::string& name = "log") const { return temp_.At(name); }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::app) << text;
  }
  static std::string Read(const std::string& path) { return TempDir::Read(path); }

  const TempDir temp_;
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

// Another process may hold the lock: the thread of a launcher that was stopped may still be
// emptying the file when the next launcher begins.
TEST_F(FileHistoryTest, AFileThatAnotherProcessCutsIsLeftToIt) {
  Write(Path(), "abcd");
  const FileLimits limits{/*bytes=*/3, /*older=*/2};
  {
    const auto other = DiskFileSystem()->TryLock(Path(), LockKind::kExclusive);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_TRUE(CutForeignFile(Path(), limits).ok());
    EXPECT_EQ(Read(Path()), "abcd");
    EXPECT_FALSE(fs::exists(Path("log.1")));
  }
  EXPECT_TRUE(CutForeignFile(Path(), limits).ok());
  EXPECT_EQ(Read(Path("log.1")), "abcd");
}

TEST_F(FileHistoryTest, OfSeveralThatCutAFileAtOnceOneDoes) {
  Write(Path(), std::string(1 << 20, 'x'));
  const FileLimits limits{/*bytes=*/3, /*older=*/4};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(CutForeignFile(Path(), limits).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fs::file_size(Path()), 0u);
  EXPECT_EQ(fs::file_size(Path("log.1")), 1u << 20);
  EXPECT_FALSE(fs::exists(Path("log.2")));
  EXPECT_FALSE(fs::exists(Path("log.partial")));
}

TEST_F(FileHistoryTest, WhatIsNotThereIsAnErrorThatNamesIt) {
  EXPECT_NE(MoveToHistory(Path("none"), 2).message().find("/none"), std::string::npos);
  EXPECT_NE(CutForeignFile(Path("none"), {}).message().find("/none"), std::string::npos);
}

}  // namespace
}  // namespace satrap
