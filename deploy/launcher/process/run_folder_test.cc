#include "deploy/launcher/process/run_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class RunFolderTest : public ::testing::Test {
 protected:
  static std::string SocketDirOf(const RunFolder& folder) {
    return fs::read_symlink(folder.path() + "/sockets").string();
  }
  const TempDir temp_;
  const std::string dir_ = temp_.path();
};

TEST_F(RunFolderTest, IsNamedByJobAndTimeAndIsTheLatest) {
  const auto folder = RunFolder::CreateUnder(dir_ + "/runs", "demo", true);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_THAT((*folder)->path(), MatchesRegex(".*/runs/demo-[0-9]{8}-[0-9]{6}"));
  EXPECT_TRUE(fs::is_directory((*folder)->path() + "/logs"));
  EXPECT_TRUE(fs::equivalent(dir_ + "/runs/latest", (*folder)->path()));
}

TEST_F(RunFolderTest, RunsOfOneSecondHaveFoldersOfTheirOwn) {
  const auto first = RunFolder::CreateUnder(dir_, "demo", true);
  const auto second = RunFolder::CreateUnder(dir_, "demo", true);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE((*first)->path(), (*second)->path());
  EXPECT_TRUE(fs::equivalent(dir_ + "/latest", (*second)->path()));
}

TEST_F(RunFolderTest, SocketsAreShortPrivateAndGoneAtTheEnd) {
  std::string sockets;
  {
    const auto folder = RunFolder::CreateAt(dir_ + "/" + std::string(150, 'x'));
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_LT((*folder)->SocketAddress("embedding_worker_0").size(), 107u);
    sockets = SocketDirOf(**folder);
    struct stat info;
    ASSERT_EQ(stat(sockets.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    std::ofstream(sockets + "/left_behind") << "x";
  }
  EXPECT_FALSE(fs::exists(sockets));
}

TEST_F(RunFolderTest, ARunIsNeverWrittenOverAnother) {
  const std::string path = dir_ + "/mine";
  {
    const auto folder = RunFolder::CreateAt(path);
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_TRUE(WriteFileAtomically((*folder)->JobPath(), "name: 'x'").ok());
  }
  const auto again = RunFolder::CreateAt(path);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(again.status().message(), HasSubstr("holds a run already"));
}

TEST_F(RunFolderTest, AFolderWhoseRunNeverBeganIsFree) {
  ASSERT_TRUE(RunFolder::CreateAt(dir_ + "/mine").ok());
  EXPECT_FALSE(fs::exists(dir_ + "/mine/job.textproto"));
  EXPECT_TRUE(RunFolder::CreateAt(dir_ + "/mine").ok());
}

TEST_F(RunFolderTest, OfTwoRunsThatBeginAtOnceOneGetsTheFolder) {
  const auto first = RunFolder::CreateAt(dir_ + "/mine");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = RunFolder::CreateAt(dir_ + "/mine");
  EXPECT_THAT(second.status().message(), HasSubstr("holds a run already"));
  EXPECT_TRUE(fs::exists(SocketDirOf(**first)));
}

TEST_F(RunFolderTest, OnlyATrainingIsTheLatest) {
  const auto training = RunFolder::CreateUnder(dir_, "demo", true);
  const auto evaluation = RunFolder::CreateUnder(dir_, "demo-evaluate", false);
  ASSERT_TRUE(training.ok() && evaluation.ok());
  EXPECT_TRUE(fs::equivalent(dir_ + "/latest", (*training)->path()));
}

TEST_F(RunFolderTest, WhatIsNoRegularFileIsWrittenToAndStays) {
  const std::string fifo = dir_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(WriteFileAtomically(fifo, "report").ok());
  char text[16] = "";
  EXPECT_EQ(read(reader, text, sizeof(text)), 6);
  close(reader);
  EXPECT_STREQ(text, "report");
  EXPECT_TRUE(fs::is_fifo(fifo));
  fs::create_symlink(dir_ + "/target", dir_ + "/link");
  EXPECT_TRUE(WriteFileAtomically(dir_ + "/link", "report").ok());
  EXPECT_TRUE(fs::is_symlink(dir_ + "/link"));
  EXPECT_EQ(fs::file_size(dir_ + "/target"), 6u);
}

TEST_F(RunFolderTest, AFileThatAStreamGoesToIsNotCutShort) {
  const std::string path = dir_ + "/stdout";
  fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(file, 0);
  dup2(file, STDOUT_FILENO);
  dprintf(STDOUT_FILENO, "before ");
  const absl::Status written = WriteFileAtomically("/dev/stdout", "report");
  dprintf(STDOUT_FILENO, " after");
  dup2(before, STDOUT_FILENO);
  close(before);
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_EQ(TempDir::Read(path), "before report after");
  EXPECT_TRUE(WriteFileAtomically("/dev/fd/" + std::to_string(file), "!").ok());
  close(file);
  EXPECT_EQ(TempDir::Read(path), "before report after!");
}

TEST_F(RunFolderTest, AReaderThatHasSeenEnoughIsNoError) {
  const sighandler_t handler = signal(SIGPIPE, SIG_IGN);
  int pipe_of[2];
  ASSERT_EQ(pipe(pipe_of), 0);
  close(pipe_of[0]);
  const std::string text(3 << 20, 'x');
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/from", text).ok());
  fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  dup2(pipe_of[1], STDOUT_FILENO);
  close(pipe_of[1]);
  const absl::Status copied = CopyFileAtomically(dir_ + "/from", "/dev/stdout");
  const absl::Status written = WriteFileAtomically("/dev/stdout", "short");
  dup2(before, STDOUT_FILENO);
  close(before);
  signal(SIGPIPE, handler);
  EXPECT_TRUE(copied.ok()) << copied;
  EXPECT_TRUE(written.ok()) << written;
}

TEST_F(RunFolderTest, AFileIsCopiedWhole) {
  const std::string text = std::string(3 << 20, 'x') + "end";
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/from", text).ok());
  std::ofstream(dir_ + "/to") << "what was there";
  EXPECT_TRUE(CopyFileAtomically(dir_ + "/from", dir_ + "/to").ok());
  EXPECT_TRUE(TempDir::Read(dir_ + "/to") == text);
  EXPECT_THAT(CopyFileAtomically(dir_ + "/from", "/dev/full").message(),
              HasSubstr("cannot write /dev/full: No space left"));
  EXPECT_THAT(CopyFileAtomically(dir_ + "/none", dir_ + "/to").message(),
              HasSubstr("cannot read " + dir_ + "/none"));
}

TEST_F(RunFolderTest, NamesTheFolderThatCannotBeMade) {
  std::ofstream(dir_ + "/file") << "x";
  const auto folder = RunFolder::CreateAt(dir_ + "/file/run");
  EXPECT_THAT(folder.status().message(), HasSubstr(dir_ + "/file/run"));
}

TEST_F(RunFolderTest, WhereNoRunCanBeMadeIsKnownBefore) {
  EXPECT_TRUE(RunFolder::CheckFree(dir_ + "/new/run").ok());
  EXPECT_FALSE(fs::exists(dir_ + "/new")) << "it is only looked at";
  EXPECT_TRUE(RunFolder::CheckFree(dir_).ok()) << "a folder that holds no run";
  std::ofstream(dir_ + "/job.textproto") << "name: 'x'";
  const absl::Status taken = RunFolder::CheckFree(dir_);
  EXPECT_EQ(taken.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(taken.message(), HasSubstr(dir_ + " holds a run already"));
  EXPECT_THAT(RunFolder::CheckFree(dir_ + "/job.textproto/run").message(),
              HasSubstr("cannot make folder " + dir_ + "/job.textproto/run: Not a directory"));
}

// The test may run as root, who can write everywhere, so it uses a folder of the kernel, which
// accepts no new file.
TEST_F(RunFolderTest, AFolderThatMustNotBeWrittenIsNotFree) {
  const absl::Status refused = RunFolder::CheckFree("/proc/self/run");
  EXPECT_THAT(refused.message(), HasSubstr("cannot make folder /proc/self/run"));
}

TEST_F(RunFolderTest, AFullDiskIsAnErrorThatNamesTheFile) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  fs::create_symlink("/dev/full", dir_ + "/report.json.partial");
  const absl::Status status = WriteFileAtomically(dir_ + "/report.json", "text");
  EXPECT_THAT(status.message(), HasSubstr("report.json: No space left"));
  EXPECT_FALSE(fs::exists(dir_ + "/report.json"));
}

TEST_F(RunFolderTest, WhatCannotBeWrittenIsKnownBefore) {
  EXPECT_TRUE(CheckWritable(dir_ + "/report.json").ok());
  EXPECT_FALSE(fs::exists(dir_ + "/report.json")) << "it is only looked at";
  std::ofstream(dir_ + "/file") << "x";
  EXPECT_TRUE(CheckWritable(dir_ + "/file").ok());
  EXPECT_TRUE(CheckWritable("/dev/null").ok());
  EXPECT_THAT(CheckWritable(dir_).message(),
              HasSubstr("cannot write " + dir_ + ": Is a directory"));
  EXPECT_THAT(CheckWritable(dir_ + "/no/report.json").message(), HasSubstr("No such file"));
  EXPECT_THAT(CheckWritable(dir_ + "/file/report.json").message(), HasSubstr("Not a directory"));
}

TEST_F(RunFolderTest, RunsAreFoundByPathByNameAndAsTheNewest) {
  EXPECT_THAT(FindRun("", dir_).status().message(), HasSubstr("there is no run under"));
  EXPECT_EQ(FindRun("demo", dir_).status().code(), absl::StatusCode::kNotFound);
  const auto folder = RunFolder::CreateUnder(dir_, "demo", true);
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(WriteFileAtomically((*folder)->JobPath(), "").ok());
  const std::string name = fs::path((*folder)->path()).filename();
  EXPECT_EQ(*FindRun((*folder)->path(), dir_), (*folder)->path());
  EXPECT_THAT(*FindRun(name, dir_), EndsWith(name));
  EXPECT_THAT(*FindRun("", dir_), EndsWith(name));
}

TEST_F(RunFolderTest, OneProcessAtATimeRunsARun) {
  auto folder = RunFolder::CreateAt(dir_ + "/run");
  ASSERT_TRUE(folder.ok()) << folder.status();
  std::ofstream((*folder)->JobPath()) << "name: 'job'\n";
  const auto second = RunFolder::Reopen(dir_ + "/run");
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.status().message(),
              HasSubstr("/run is being run by process " + std::to_string(getpid()) +
                        ": stop it first, with `satrap stop "));
  EXPECT_TRUE(fs::is_symlink(dir_ + "/run/sockets")) << "the other one's sockets stay";
  EXPECT_EQ(RunnerOf(dir_ + "/run"), "process " + std::to_string(getpid()));
  folder->reset();
  EXPECT_EQ(RunnerOf(dir_ + "/run"), "");
  EXPECT_EQ(RunnerOf(dir_ + "/no_run"), "");
  const auto third = RunFolder::Reopen(dir_ + "/run/");
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ((*third)->path(), dir_ + "/run");
  EXPECT_TRUE(fs::exists((*third)->JobPath()));
}

TEST_F(RunFolderTest, WhoOnlyLooksDoesNotKeepARunFromGoingOn) {
  std::ofstream(dir_ + "/lock") << "4711\n";
  std::thread looker;
  {
    const int fd = open((dir_ + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(flock(fd, LOCK_SH), 0);
    looker = std::thread([fd] {
      poll(nullptr, 0, 100);
      close(fd);
    });
  }
  const auto folder = RunFolder::Reopen(dir_);
  looker.join();
  EXPECT_TRUE(folder.ok()) << folder.status();
}

TEST_F(RunFolderTest, ARunnerWithoutANumberIsAnotherProcess) {
  const int fd = open((dir_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  EXPECT_EQ(RunnerOf(dir_), "another process");
  EXPECT_THAT(RunFolder::Reopen(dir_).status().message(),
              HasSubstr(" is being run by another process: stop it first"));
  EXPECT_FALSE(WaitUntilReleased(dir_, 50));
  std::thread runner([fd] {
    poll(nullptr, 0, 100);
    close(fd);
  });
  EXPECT_TRUE(WaitUntilReleased(dir_, 60000));
  runner.join();
}

// The lock file cannot be written, as on a full disk. The file is left empty, but this process
// gets the lock.
TEST_F(RunFolderTest, ALockThatCannotBeWrittenIsTaken) {
  std::ofstream(dir_ + "/lock") << "4711\n";
  const sighandler_t before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto folder = RunFolder::Reopen(dir_);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_THAT(folder.status().message(), Not(HasSubstr("/lock")));
  EXPECT_EQ(fs::file_size(dir_ + "/lock"), 0u) << "the number of the process before is gone";
}

}  // namespace
}  // namespace satrap
