#include "deploy/launcher/socket_folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

class SocketFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = ::testing::TempDir() + "socket_folder_test.XXXXXX";
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
    fs::create_directory(dir_ + "/parent");
  }
  void TearDown() override { fs::remove_all(dir_); }
  absl::StatusOr<std::unique_ptr<SocketFolder>> Make(const std::string& link) {
    return SocketFolder::Make(dir_ + "/parent", dir_ + "/" + link);
  }
  // Makes a folder in a process that is killed. Returns its path.
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
  std::string dir_;
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
  // Without an owner's file; of another mode; a file.
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

}  // namespace
}  // namespace satrap
