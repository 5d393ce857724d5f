#include "deploy/launcher/process/socket_folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

class SocketFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(dir_ + "/parent"); }
  absl::StatusOr<std::unique_ptr<SocketFolder>> Make(const std::string& link) {
    return SocketFolder::Make(dir_ + "/parent", dir_ + "/" + link);
  }
  // Makes a folder in a process that is then killed. Returns the folder's path.
  std::string MakeAndDie(const std::string& link) {
    const pid_t pid = fork();
    if (pid == 0) {
      const auto folder = Make(link);
      raise(SIGKILL);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status));
    return fs::read_symlink(dir_ + "/" + link).string();
  }
  const TempDir temp_;
  const std::string dir_ = temp_.path();
};

TEST_F(SocketFolderTest, IsPrivateAndGoneWithItsLinkAtTheEnd) {
  std::string path;
  {
    const auto folder = Make("sockets");
    ASSERT_TRUE(folder.ok()) << folder.status();
    path = (*folder)->path();
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    EXPECT_EQ(fs::read_symlink(dir_ + "/sockets"), path);
    std::ofstream(path + "/left_behind") << "x";
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::is_symlink(dir_ + "/sockets"));
}

TEST_F(SocketFolderTest, TheNextOneRemovesThatOfAnOwnerThatWasKilled) {
  const std::string left = MakeAndDie("killed");
  ASSERT_TRUE(fs::is_directory(left)) << "a killed process removes nothing";
  const auto next = Make("next");
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::is_symlink(dir_ + "/killed"));
  EXPECT_TRUE(fs::is_directory((*next)->path()));
}

TEST_F(SocketFolderTest, ALinkThatPointsElsewhereByNowStays) {
  MakeAndDie("sockets");
  fs::remove(dir_ + "/sockets");
  fs::create_symlink("elsewhere", dir_ + "/sockets");
  ASSERT_TRUE(Make("next").ok());
  EXPECT_TRUE(fs::is_symlink(dir_ + "/sockets"));
}

TEST_F(SocketFolderTest, TheFolderOfAnOwnerThatLivesStays) {
  const auto first = Make("first");
  const auto second = Make("second");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(fs::is_directory((*first)->path()));
  EXPECT_TRUE(fs::is_symlink(dir_ + "/first"));
}

TEST_F(SocketFolderTest, WhatOnlyLooksLikeOneStays) {
  // Makes entries that must stay: a folder without an owner's file, a folder with another mode, a
  // folder with a longer name, and a file.
  const std::string parent = dir_ + "/parent/";
  for (const std::string name : {"satrap-aaaaaa", "satrap-bbbbbb", "satrap-toolong"}) {
    fs::create_directory(parent + name);
    fs::permissions(parent + name, fs::perms::owner_all);
  }
  std::ofstream(parent + "satrap-bbbbbb/owner") << "";
  std::ofstream(parent + "satrap-toolong/owner") << "";
  fs::permissions(parent + "satrap-bbbbbb", fs::perms(0755));
  std::ofstream(parent + "satrap-cccccc") << "x";
  ASSERT_TRUE(Make("next").ok());
  for (const std::string name :
       {"satrap-aaaaaa", "satrap-bbbbbb", "satrap-toolong", "satrap-cccccc"}) {
    EXPECT_TRUE(fs::exists(parent + name)) << name;
  }
}

TEST_F(SocketFolderTest, NamesTheFolderThatCannotBeMade) {
  const auto folder = SocketFolder::Make(dir_ + "/none", dir_ + "/sockets");
  EXPECT_NE(folder.status().message().find(dir_ + "/none"), absl::string_view::npos)
      << folder.status();
}

// Tests that set TMPDIR. TearDown restores it, because it holds for the whole process.
class TemporaryFolderTest : public SocketFolderTest {
 protected:
  void SetUp() override {
    SocketFolderTest::SetUp();
    before_ = fs::temp_directory_path();
  }
  void TearDown() override {
    setenv("TMPDIR", before_.c_str(), 1);
    SocketFolderTest::TearDown();
  }
  // The error if TMPDIR is `folder`; empty if there is none.
  std::string ErrorWith(const std::string& folder) {
    setenv("TMPDIR", folder.c_str(), 1);
    return std::string(SocketFolder::MakeInTemporaryFolder(dir_ + "/sockets").status().message());
  }
  std::string before_;
};

TEST_F(TemporaryFolderTest, IsThatOfTheEnvironment) {
  // Use a short path, because the path of a socket is limited.
  std::string short_dir = (fs::temp_directory_path() / "s.XXXXXX").string();
  ASSERT_NE(mkdtemp(short_dir.data()), nullptr);
  setenv("TMPDIR", short_dir.c_str(), 1);
  {
    const auto folder = SocketFolder::MakeInTemporaryFolder(dir_ + "/sockets");
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ(fs::path((*folder)->path()).parent_path(), short_dir);
  }
  EXPECT_TRUE(fs::is_empty(short_dir));
  fs::remove(short_dir);
}

TEST_F(TemporaryFolderTest, ThatCannotBeUsedIsNamedInOneLine) {
  EXPECT_EQ(ErrorWith("/no/such"),
            "cannot use the temporary folder that TMPDIR names: No such file or directory");
  const std::string refused = ErrorWith("/proc/self");
  EXPECT_NE(refused.find("cannot make folder /proc/self/satrap-"), std::string::npos) << refused;
  EXPECT_NE(refused.find("; TMPDIR names another folder"), std::string::npos) << refused;
  const std::string long_dir = dir_ + "/" + std::string(80, 'x');
  fs::create_directory(long_dir);
  const std::string too_long = ErrorWith(long_dir);
  EXPECT_NE(too_long.find(long_dir + " (TMPDIR) has a path of "), std::string::npos) << too_long;
  EXPECT_NE(too_long.find("at most 64 bytes"), std::string::npos) << too_long;
}

}  // namespace
}  // namespace satrap
